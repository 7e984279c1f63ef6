// The parsers of rows. Laws, for every option and every body:
//
//   - however the bytes are cut into blocks and the rows into batches, the same rows, line numbers and reasons; and the
//     same when lines are read from a file through a window
//   - leaving bad rows out gives the rows that stopping at the first gives, and then more
//   - a row has distinct cells inside the table, finite values that are not 0, and the intercept alone in its cell
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <set>
#include <utility>

#include "engine.hpp"
#include "readers/json_lines.hpp"
#include "readers/json_sample.hpp"
#include "readers/libsvm.hpp"
#include "readers/sample.hpp"
#include "readers/table.hpp"
#include "readers/vw.hpp"
#include "readers/window.hpp"

namespace fuzz {
namespace {

using namespace ftprl;

template <class T>
void append(std::string& out, const T* data, std::size_t count) {
    if (count != 0) out.append(reinterpret_cast<const char*>(data), count * sizeof(T));
}

template <class T>
void drop(Buffer<T>& buffer) {
    buffer.reserve(1);
    Blocks::shared().give(buffer.release());
}

// What a reading gave.
struct Reading {
    std::vector<std::string> rows;   // the bits of a row
    std::vector<std::string> names;  // of features, if they are kept
    Problem problem, first_bad;
    std::int64_t bad = 0, line = 0;
};

bool is_too_long(const std::string& message) { return message.find("expected a row of at most") == 0; }

void check_problem(const Problem& problem) {
    if (problem.line == 0) return;
    law(problem.line > 0, "a line number is positive");
    law(problem.fault.message.find("expected ") == 0, "a reason says what was expected");
    law(problem.fault.message.size() < 400, "a reason is short");
}

template <class T>
void check_row(const Slots& slots, const std::uint32_t* index, const T* value, std::size_t count) {
    std::set<std::uint32_t> met;
    for (std::size_t i = 0; i < count; ++i) {
        law(index[i] < slots.dim(), "a cell is inside the table");
        law(met.insert(index[i]).second, "a cell stands once in a row");
        law(std::isfinite(value[i]) && value[i] != T{0}, "a value is finite and not 0");
    }
    if (!slots.intercept()) return;
    law(count > 0 && index[count - 1] == slots.dim() - 1 && value[count - 1] == T{1},
        "the intercept is there, and last");
}

void check_label(const Labels& labels, double y, double weight) {
    const bool two = labels.kind == Labels::Kind::sign || labels.kind == Labels::Kind::equal;
    law(std::isnan(y) || (two ? std::fabs(y) == 1.0 : std::isfinite(y)), "a label is what its rule says");
    law(std::isfinite(weight) && weight >= 0.0, "a weight is finite and not negative");
}

// Takes the rows read so far, as the bindings do.
void take(Parser& parser, const Labels& labels, Reading& out) {
    RowBuilder& rows = parser.rows;
    rows.write_unit_values();
    const std::size_t count = rows.count();
    law(rows.indptr.size() == count + 1 && rows.weight.size() == count, "there are as many of each");
    const std::int64_t* ends = rows.indptr.data();
    law(ends[0] == 0 && ends[count] == static_cast<std::int64_t>(rows.indices.size()), "the rows cover the entries");
    auto tag = rows.tags.begin();
    for (std::size_t r = 0; r < count; ++r) {
        law(ends[r] <= ends[r + 1], "a row ends after it begins");
        const auto from = static_cast<std::size_t>(ends[r]);
        const auto size = static_cast<std::size_t>(ends[r + 1] - ends[r]);
        std::string bits;
        if (size != 0) append(bits, rows.indices.data() + from, size);
        if (size != 0 && rows.wide()) {
            check_row(rows.slots(), rows.indices.data() + from, rows.wide_values.data() + from, size);
            append(bits, rows.wide_values.data() + from, size);
        } else if (size != 0) {
            check_row(rows.slots(), rows.indices.data() + from, rows.narrow_values.data() + from, size);
            append(bits, rows.narrow_values.data() + from, size);
        }
        check_label(labels, rows.y.data()[r], rows.weight.data()[r]);
        append(bits, rows.y.data() + r, 1);
        append(bits, rows.weight.data() + r, 1);
        if (tag != rows.tags.end() && tag->first == r) bits += (tag++)->second;
        out.rows.push_back(std::move(bits));
    }
    law(tag == rows.tags.end(), "every tag belongs to a row");
    drop(rows.indptr);
    drop(rows.indices);
    if (rows.wide()) drop(rows.wide_values);
    if (!rows.wide()) drop(rows.narrow_values);
    drop(rows.y);
    drop(rows.weight);
    rows.clear();
    if (!rows.log.keeps_names()) return;
    const NewNames names = rows.log.take();
    for (std::size_t i = 0; i < names.size(); ++i) {
        law(names[i].row < count, "a name belongs to a row");
        const std::string name(reinterpret_cast<const char*>(names.text_of(names[i])), names[i].size);
        out.names.push_back(std::to_string(names[i].hash) + name);
    }
}

// Feeds a parser as the library does: what is left of a block comes before the next one. Null cuts: one block.
Reading read(Parser& parser, const std::string& body, const Options& options, const Labels& labels, Random* cuts) {
    Reading out;
    std::size_t next = 0, at = 0;
    bool last = false;
    auto block = std::make_unique<Exact>("");
    for (;;) {
        const std::size_t from = at;
        at = parser.feed(block->data(), block->size(), at, last);
        law(at >= from && at <= block->size(), "reading stops inside the block");
        out.problem = parser.problem;
        if (out.problem.line == 0 && !parser.full()) {
            law(!last || at == block->size(), "all is read when nothing follows");
            const std::string rest(block->data() + at, block->end());
            if (!last && rest.size() > options.max_row) {
                out.problem = Problem{parser.line, "expected a row of at most"};
            } else if (!last) {
                std::size_t size = body.size() - next;
                if (cuts != nullptr && size != 0)
                    size = 1 + cuts->below(cuts->one_in(4) ? size : std::min<std::size_t>(size, 9));
                block = std::make_unique<Exact>(rest + body.substr(next, size));
                next += size;
                at = 0;
                last = size == 0;
                continue;
            }
        }
        take(parser, labels, out);
        if (out.problem.line != 0 || (last && at == block->size())) break;
    }
    out.first_bad = parser.first_bad;
    out.bad = parser.bad;
    out.line = parser.line;
    check_problem(out.problem);
    check_problem(out.first_bad);
    // Noticed early or late, with another message.
    if (is_too_long(out.problem.fault.message)) out.problem.fault.message = "too long";
    return out;
}

// Feeds a parser from a file, through a window of a few bytes that grows where it must.
Reading read_file(Parser& parser, const std::string& body, const Labels& labels, Random& random) {
    static std::FILE* const file = std::tmpfile();
    law(file != nullptr && ftruncate(fileno(file), 0) == 0, "there is room for a file");
    law(pwrite(fileno(file), body.data(), body.size(), 0) == static_cast<ssize_t>(body.size()),
        "a file can be written");
    Reading out;
    Window window(2 + random.below(60));
    window.open(fileno(file), 0, body.size());
    bool more = true;
    while (more && out.problem.line == 0) {
        more = window.feed(parser);
        law(window.error == 0, "a file can be read");
        out.problem = parser.problem;
        take(parser, labels, out);
    }
    out.first_bad = parser.first_bad;
    out.bad = parser.bad;
    out.line = parser.line;
    if (is_too_long(out.problem.fault.message)) out.problem.fault.message = "too long";
    return out;
}

bool same(const Problem& a, const Problem& b) { return a.line == b.line && a.fault.message == b.fault.message; }

void check_same(const Reading& one, const Reading& other) {
    law(one.rows == other.rows, "blocks and batches do not matter: rows");
    law(one.names == other.names, "blocks and batches do not matter: names");
    law(same(one.problem, other.problem), "blocks and batches do not matter: the problem");
    law(same(one.first_bad, other.first_bad) && one.bad == other.bad, "blocks and batches do not matter: bad rows");
    law(one.line == other.line, "blocks and batches do not matter: lines");
}

void check_skipping(const Reading& stops, const Reading& skips) {
    law(stops.bad == 0 && stops.first_bad.line == 0, "stopping leaves nothing out");
    law(same(stops.problem, skips.bad != 0 ? skips.first_bad : skips.problem), "both name the same first problem");
    law(stops.rows.size() <= skips.rows.size(), "skipping reads on");
    law(std::equal(stops.rows.begin(), stops.rows.end(), skips.rows.begin()), "the rows before a bad one are the same");
    law(skips.bad != 0 || stops.rows.size() == skips.rows.size(), "without a bad row both read the same");
}

Options options_of(Random& random) {
    constexpr std::uint64_t dims[] = {2, 3, 64, 97, 1000, 1u << 22, std::uint64_t{1} << 32};
    constexpr std::uint64_t seeds[] = {0, 7, ~std::uint64_t{0}};
    constexpr std::size_t longest[] = {5, 30, 1000, 16000000};
    Options options;
    options.dim = random.pick(dims);
    options.seed = random.pick(seeds);
    options.intercept = random.one_in(2);
    options.wide = random.one_in(2);
    options.max_row = longest[random.one_in(3) ? random.below(3) : 3];
    options.batch_rows = 8192;
    options.batch_values = 1u << 21;
    options.names = random.one_in(3);
    if (random.one_in(4)) options.interactions.add({"a", random.one_in(2) ? "*" : "b"});
    if (random.one_in(3)) {
        GramRule rule;
        rule.words = random.below(5);
        rule.skips = random.below(4);
        rule.longest = random.below(6);
        rule.shortest = rule.longest == 0 ? 0 : 1 + random.below(rule.longest);
        for (const char* name : {"*", "a", "text"}) {
            if (random.one_in(2)) options.grams.add(name, rule);
        }
    }
    return options;
}

Labels labels_of(Random& random, bool numbers_only) {
    Labels labels;
    constexpr const char* positives[] = {"1", "0", "-1", "yes", "", "1e400", "2.50", "a"};
    switch (random.below(numbers_only ? 3 : 4)) {
        case 0:
            labels.kind = Labels::Kind::sign;
            break;
        case 1:
            labels.kind = Labels::Kind::number;
            break;
        case 2:
            labels.set_positive(random.pick(positives));
            break;
        default:
            labels.kind = Labels::Kind::words;
            labels.words = {{"yes", 1.0}, {"no", -1.0}};
    }
    labels.numbers_only = numbers_only;
    return labels;
}

// `make` gives a parser for some options. Every body is read four times.
template <class Make>
void check_parser(const std::string& body, Random& random, bool numbers_only, Make make) {
    Options options = options_of(random);
    const Labels labels = labels_of(random, numbers_only);
    Reading whole[2];
    for (const bool skip : {false, true}) {
        options.skip = skip;
        whole[skip] = read(*make(options, labels), body, options, labels, nullptr);
        Options other = options;
        other.batch_rows = 1 + random.below(5);
        other.batch_values = 1 + random.below(20);
        check_same(whole[skip], read(*make(other, labels), body, other, labels, &random));
        if (numbers_only && random.one_in(4))
            check_same(whole[skip], read_file(*make(other, labels), body, labels, random));
    }
    check_skipping(whole[0], whole[1]);
}

void run_vw(const std::string& body, Random random) {
    check_parser(body, random, true,
                 [](const Options& o, const Labels& l) { return std::make_unique<VwParser>(o, l); });
}

void run_libsvm(const std::string& body, Random random) {
    check_parser(body, random, true, [](Options o, const Labels& l) {
        o.names = false;  // as the bindings do: ids are the names
        o.interactions = Interactions();
        o.grams = Grams();
        return std::make_unique<LibsvmParser>(o, l);
    });
}

struct First {
    Split result;
    std::vector<std::string> fields;
    std::ptrdiff_t next = 0;
    std::int64_t lines = 0;
};

First first_row(const Exact& data, bool last, const Dialect& dialect) {
    Splitter split(dialect);
    First first{split(data.data(), data.end(), last), {}, 0, 0};
    if (first.result == Split::cut || first.result == Split::unclosed) return first;
    for (const Field& field : split.fields) first.fields.emplace_back(field.data, field.end);
    first.next = split.next - data.data();
    first.lines = split.lines;
    return first;
}

// The first row, as a header is read: once it is whole, more bytes change nothing.
First check_first_row(const std::string& body, const Dialect& dialect, Random& random) {
    First whole = first_row(Exact(body), true, dialect);
    const First part = first_row(Exact(body.substr(0, random.below(body.size() + 1))), false, dialect);
    if (part.result != Split::cut) {
        law(part.result == whole.result && part.fields == whole.fields, "a whole row stays as it is: fields");
        law(part.next == whole.next && part.lines == whole.lines, "a whole row stays as it is: its end");
    }
    return whole;
}

void check_look(const std::string& body, const Dialect& dialect, std::size_t columns, Random& random) {
    const std::size_t label = random.below(columns + 1);
    const std::int64_t most = 1 + static_cast<std::int64_t>(random.below(20));
    std::int64_t before = 0;
    for (const bool all : {false, true}) {
        std::vector<ColumnSample> samples(columns);
        const Exact data(all ? body : body.substr(0, random.below(body.size() + 1)));
        const std::int64_t count = sample_columns(data.data(), data.end(), all, dialect, most, 4, label, samples);
        law(count >= before && count <= most, "looking at more bytes shows no fewer rows, and not too many");
        before = count;
        for (const ColumnSample& sample : samples) {
            law(sample.cells == count && sample.empty <= sample.absent && sample.absent <= count,
                "columns are counted once a row");
            law(sample.numbers + sample.dates + sample.commas + sample.absent <= count, "a cell is of one kind");
            law(sample.labels.size() <= 4, "no more labels are kept than asked for");
            law(sample.values.empty(), "no numbers are kept unless they are asked for");
        }
    }
}

CellParser::Rules rules_of(Random& random, const std::vector<const char*>& names) {
    CellParser::Rules rules;
    rules.marks_missing = random.one_in(2);
    rules.advises = random.one_in(2);
    for (const char* name : names) {
        if (random.one_in(2)) rules.numbers[name] = {-1.0, 0.5, 1700000000.0};
    }
    return rules;
}

void run_table(const std::string& body, Random random) {
    constexpr Byte separators[] = {',', ',', ';', '\t', '|', ' ', 0, 'a', 0xc3};
    constexpr Byte quotes[] = {'"', '"', '\'', '|', ' ', 0};
    constexpr const char* names[] = {
        "a", "", "price", "a long name of a column", "12345678", "1234567", "\xc3\xa9t\xc3\xa9"};
    Dialect dialect;
    dialect.separator = random.pick(separators);
    dialect.quotes = !random.one_in(3);
    dialect.quote = random.pick(quotes);
    if (dialect.quote == dialect.separator) dialect.quotes = false;
    const First first = check_first_row(body, dialect, random);
    // Most rows should have the number of columns that is expected, or little of the parser would be reached.
    const std::size_t count = random.one_in(4) || first.fields.empty() ? 1 + random.below(6) : first.fields.size();
    std::vector<Column> columns;
    for (std::size_t i = 0; i < count; ++i)
        columns.push_back({static_cast<Column::Kind>(random.below(KINDS)), random.pick(names)});
    const CellParser::Rules rules = rules_of(random, {std::begin(names), std::end(names)});
    check_look(body, dialect, count, random);
    check_parser(body, random, false, [&](const Options& o, const Labels& l) {
        auto parser = std::make_unique<TableParser>(o, l, dialect);
        parser->set_rules(rules);
        parser->set_columns(columns);
        return parser;
    });
}

// What the first lines show: more bytes show no fewer of them.
void check_look(const std::string& body, Random& random) {
    const std::int64_t most = 1 + static_cast<std::int64_t>(random.below(20));
    std::int64_t before = 0;
    for (const bool all : {false, true}) {
        JsonSample sample("y", 4, {"a"});
        const Exact data(all ? body : body.substr(0, random.below(body.size() + 1)));
        const std::int64_t count = sample(data.data(), data.end(), all, most);
        law(count >= before && count <= most, "looking at more bytes shows no fewer lines, and not too many");
        before = count;
        std::set<std::string> met;
        for (const auto& column : sample.columns) {
            law(met.insert(column.name).second, "a column is counted once");
            law(column.sample.labels.size() <= 4, "no more labels are kept than asked for");
        }
    }
}

void run_jsonl(const std::string& body, Random random) {
    const std::vector<const char*> names = {"y", "a", "b", "a.b", "text", "", "w", "\xc3\xa9t\xc3\xa9"};
    std::vector<Column> columns;
    for (const char* name : names) {
        if (!random.one_in(3)) columns.push_back({static_cast<Column::Kind>(random.below(KINDS)), name});
    }
    const CellParser::Rules rules = rules_of(random, names);
    const bool reads_others = random.one_in(2);
    check_look(body, random);
    check_parser(body, random, false, [&](const Options& o, const Labels& l) {
        auto parser = std::make_unique<JsonLinesParser>(o, l);
        parser->set_rules(rules);
        parser->set_names(columns);
        parser->reads_others = reads_others;
        return parser;
    });
}

std::vector<std::string> json_tokens() {
    return {"{",
            "}",
            "[",
            "]",
            "{\"",
            "\":",
            ",\"",
            "\"",
            "\\",
            "\\u00e9",
            "\\ud83d\\ude00",
            "null",
            "true",
            "false",
            "[1,2]",
            "{\"a\":",
            "\"a\":1",
            "\"y\":1",
            "\\n",
            "{\"name\":",
            "\"value\":",
            "[[",
            "\"text\":\"a b a\"",
            "\"2024-01-31\"",
            "{}\n",
            ",",
            ":"};
}

std::vector<std::string> with_numbers(std::vector<std::string> tokens) {
    for (const char* text : {"0",     "1",        "-1",     "2.5",      "1e39",
                             "1e-50", "1e400",    "-1e308", "1e308",    "nan",
                             "inf",   "0x1",      ".",      "1e",       "1234567890123456",
                             "\r",    "\n",       "\r\n",   "\n\n",     " ",
                             "\t",    "\xc3\xa9", "\xff",   "abcdefgh", "abcdefghijklmnop"}) {
        tokens.emplace_back(text);
    }
    tokens.emplace_back(1, '\0');
    return tokens;
}

}  // namespace

Target vw_target() {
    return {"vw", run_vw,
            with_numbers({"|", "| ", " |", "|a ", "|ns:2 ", ":", ":1", " a", " b:2", " :3", "'tag", "1 |", "-1 |",
                          "1 2 'x|f a b\n"})};
}

Target libsvm_target() {
    return {"libsvm", run_libsvm,
            with_numbers({"1:1", " 2:0.5", "qid:3", "#", ":", "63:", "96:2", "4294967295:1", "99999999999999999999:1",
                          "+1 1:2\n"})};
}

Target table_target() {
    return {"table", run_table,
            with_numbers({",", ";", "|", "\"", "\"\"", "\",\"", "\"\n", "'", "yes", "no", "NA", "n/a", "None", ",,",
                          "\"a\"\"b\"", "Ab_1 cD", "\xe2\x82\xac"})};
}

Target jsonl_target() { return {"jsonl", run_jsonl, with_numbers(json_tokens())}; }

}  // namespace fuzz
