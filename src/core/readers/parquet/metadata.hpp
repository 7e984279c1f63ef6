// What the end of a Parquet file says of its columns and row groups, and what stands before a page
// (https://github.com/apache/parquet-format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "readers/parquet/thrift.hpp"

namespace ftprl::parquet {

enum class Physical : int {
    boolean = 0,
    int32 = 1,
    int64 = 2,
    int96 = 3,
    float32 = 4,
    float64 = 5,
    bytes = 6,
    fixed = 7
};
enum class Codec : int { none = 0, snappy = 1, zstd = 6 };  // others are somebody else's
enum Encoding : int { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, BIT_PACKED = 4, RLE_DICTIONARY = 8 };

// A column. `converted` and `logical` are what its numbers or bytes mean, by the numbers of the format; -1 is nothing.
struct Leaf {
    std::string name;
    std::int64_t type = -1;
    std::int64_t repetition = 0;  // 0 has a value in each row, 1 may have none, 2 has several
    std::int64_t children = 0;
    std::int64_t converted = -1;
    std::int64_t logical = -1;
    std::int64_t unit = 0;  // of a time: 1 is a millisecond, 2 a microsecond, 3 a nanosecond
    bool is_utc = false;
    std::int64_t encodings = 0;  // in any row group, as bits
    std::int64_t codecs = 0;
};

// A column in a row group.
struct Chunk {
    std::int64_t type = -1;
    std::int64_t codec = 0;
    std::int64_t encodings = 0;
    std::int64_t values = 0;
    std::int64_t size = 0;
    std::int64_t data_offset = -1;
    std::int64_t dictionary_offset = -1;
    bool is_elsewhere = false;  // in another file, or encrypted
    std::string name;           // of a column that is in no other; or else empty

    std::int64_t offset() const noexcept {
        return dictionary_offset > 0 && dictionary_offset < data_offset ? dictionary_offset : data_offset;
    }
};

struct RowGroup {
    std::int64_t rows = 0;
    std::vector<Chunk> chunks;
};

struct Metadata {
    std::vector<Leaf> leaves;
    std::vector<RowGroup> groups;
    std::string arrow_schema;  // as it stands there
    bool is_flat = true;       // a column has no columns inside
};

namespace detail {

inline void read_logical(Thrift& in, Leaf& leaf) {
    in.structure([&](std::int64_t id, int type) {
        leaf.logical = id;
        if (id != 8 || type != Thrift::STRUCTURE) return false;
        in.structure([&](std::int64_t part, int part_type) {  // a timestamp
            if (part == 1) leaf.is_utc = part_type == Thrift::yes;
            if (part != 2 || part_type != Thrift::STRUCTURE) return false;
            in.structure([&](std::int64_t unit, int) {
                leaf.unit = unit;
                return false;
            });
            return true;
        });
        return true;
    });
}

inline Leaf read_leaf(Thrift& in) {
    Leaf leaf;
    in.structure([&](std::int64_t id, int type) {
        switch (id) {
            case 1:
                return in.number(type, leaf.type);
            case 3:
                return in.number(type, leaf.repetition);
            case 4:
                return in.string(type, leaf.name);
            case 5:
                return in.number(type, leaf.children);
            case 6:
                return in.number(type, leaf.converted);
            case 10:
                if (type != Thrift::STRUCTURE) return false;
                read_logical(in, leaf);
                return true;
            default:
                return false;
        }
    });
    return leaf;
}

inline void read_column(Thrift& in, Chunk& chunk) {
    in.structure([&](std::int64_t id, int type) {
        switch (id) {
            case 1:
                return in.number(type, chunk.type);
            case 2:
                if (type != Thrift::list) return false;
                in.elements([&](int) {
                    const std::int64_t encoding = in.number();
                    chunk.encodings |= std::int64_t{1} << (encoding < 0 || encoding > 62 ? 62 : encoding);
                });
                return true;
            case 3: {
                if (type != Thrift::list) return false;
                std::size_t parts = 0;
                in.elements([&](int part) {
                    if (!in.string(part, chunk.name)) in.skip(part, true);
                    ++parts;
                });
                if (parts != 1) chunk.name.clear();
                return true;
            }
            case 4:
                return in.number(type, chunk.codec);
            case 5:
                return in.number(type, chunk.values);
            case 7:
                return in.number(type, chunk.size);
            case 9:
                return in.number(type, chunk.data_offset);
            case 11:
                return in.number(type, chunk.dictionary_offset);
            default:
                return false;
        }
    });
}

inline Chunk read_chunk(Thrift& in) {
    Chunk chunk;
    in.structure([&](std::int64_t id, int type) {
        if (id == 1 || id == 8 || id == 9) chunk.is_elsewhere = true;
        if (id != 3 || type != Thrift::STRUCTURE) return false;
        read_column(in, chunk);
        return true;
    });
    return chunk;
}

inline RowGroup read_group(Thrift& in) {
    RowGroup group;
    in.structure([&](std::int64_t id, int type) {
        if (id == 3) return in.number(type, group.rows);
        if (id != 1 || type != Thrift::list) return false;
        in.elements([&](int) { group.chunks.push_back(read_chunk(in)); });
        return true;
    });
    return group;
}

inline void read_pair(Thrift& in, std::string& arrow_schema) {
    std::string key, value;
    in.structure([&](std::int64_t id, int type) {
        return (id == 1 && in.string(type, key)) || (id == 2 && in.string(type, value));
    });
    if (key == "ARROW:schema") arrow_schema = value;
}

}  // namespace detail

// The metadata in [p, end). Columns and row groups fit each other, and every part of a column is within the first
// `size` bytes of the file.
inline Metadata read_metadata(const Byte* p, const Byte* end, std::int64_t size) {
    Metadata match;
    Thrift in(p, end);
    std::vector<Leaf> schema;
    in.structure([&](std::int64_t id, int type) {
        if (type != Thrift::list) return false;
        if (id == 2) {
            in.elements([&](int) { schema.push_back(detail::read_leaf(in)); });
        } else if (id == 4) {
            in.elements([&](int) { match.groups.push_back(detail::read_group(in)); });
        } else if (id == 5) {
            in.elements([&](int) { detail::read_pair(in, match.arrow_schema); });
        } else {
            return false;
        }
        return true;
    });
    if (schema.empty()) throw Damaged("a file without a schema");
    match.leaves.assign(schema.begin() + 1, schema.end());
    for (const Leaf& leaf : match.leaves) match.is_flat = match.is_flat && leaf.children == 0 && leaf.repetition < 2;
    if (!match.is_flat) return match;
    if (schema[0].children != static_cast<std::int64_t>(match.leaves.size())) throw Damaged("a schema that is cut");
    for (const RowGroup& group : match.groups) {
        if (group.chunks.size() != match.leaves.size() || group.rows < 0) throw Damaged("a row group of other columns");
        for (std::size_t i = 0; i < group.chunks.size(); ++i) {
            const Chunk& chunk = group.chunks[i];
            Leaf& leaf = match.leaves[i];
            const bool is_inside = chunk.offset() >= 4 && chunk.size >= 0 && chunk.offset() <= size - chunk.size;
            if (chunk.type != leaf.type || chunk.values != group.rows || (chunk.size != 0 && !is_inside)) {
                throw Damaged("a part of a column that is not in the file");
            }
            leaf.encodings |= chunk.is_elsewhere ? std::int64_t{1} << 62 : chunk.encodings;
            leaf.codecs |= std::int64_t{1} << (chunk.codec < 0 || chunk.codec > 62 ? 62 : chunk.codec);
        }
    }
    return match;
}

// The columns that are in no other and have a dictionary in the first row group, by the metadata in [p, end).
inline std::vector<std::string> columns_with_dictionaries(const Byte* p, const Byte* end) {
    std::vector<std::string> match;
    bool is_first = true;
    Thrift in(p, end);
    in.structure([&](std::int64_t id, int type) {
        if (id != 4 || type != Thrift::list) return false;
        in.elements([&](int) {
            const RowGroup group = detail::read_group(in);
            for (const Chunk& chunk : group.chunks) {
                if (is_first && chunk.dictionary_offset > 0 && !chunk.name.empty()) match.push_back(chunk.name);
            }
            is_first = false;
        });
        return true;
    });
    return match;
}

// What stands before a page.
struct PageHead {
    enum Kind : int { DATA = 0, INDEX = 1, DICTIONARY = 2, DATA_V2 = 3 };
    std::int64_t kind = -1;
    std::int64_t full_size = -1;  // after decompression
    std::int64_t size = -1;
    std::int64_t values = -1;
    std::int64_t encoding = -1;
    std::int64_t level_encoding = RLE;
    std::int64_t level_size = 0;  // of pages of version 2: in front of the values, never compressed
    std::int64_t repetition_size = 0;
    bool is_compressed = true;
};

// Reads it at `p` and returns where the page begins.
inline const Byte* read_page_head(const Byte* p, const Byte* end, PageHead& page) {
    Thrift in(p, end);
    in.structure([&](std::int64_t id, int type) {
        if (id == 1) return in.number(type, page.kind);
        if (id == 2) return in.number(type, page.full_size);
        if (id == 3) return in.number(type, page.size);
        if ((id != 5 && id != 7 && id != 8) || type != Thrift::STRUCTURE) return false;
        in.structure([&](std::int64_t part, int part_type) {
            if (part == 1) return in.number(part_type, page.values);
            if (part == (id == 8 ? 4 : 2)) return in.number(part_type, page.encoding);
            if (id == 5 && part == 3) return in.number(part_type, page.level_encoding);
            if (id == 8 && part == 5) return in.number(part_type, page.level_size);
            if (id == 8 && part == 6) return in.number(part_type, page.repetition_size);
            if (id == 8 && part == 7) page.is_compressed = part_type == Thrift::yes;
            return false;
        });
        return true;
    });
    return in.at();
}

}  // namespace ftprl::parquet
