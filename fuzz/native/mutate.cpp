// One body from another: a few small changes, each of a kind that breaks parsers.
#include <algorithm>

#include "engine.hpp"

namespace fuzz {
namespace {

constexpr std::size_t LARGEST = 4096;
constexpr unsigned char BYTES[] = {0,  1,  9,  10, 13, 32,  34,  35,  39,   43,   44,   45,   46,
                                   47, 48, 57, 58, 59, 124, 127, 128, 0xbf, 0xc3, 0xe2, 0xf4, 0xff};

std::string piece(const std::string& of, Random& random, std::size_t most) {
    if (of.empty()) return {};
    const std::size_t from = random.below(of.size());
    return of.substr(from, 1 + random.below(most));
}

void change(std::string& body, const std::vector<std::string>& tokens, const std::vector<std::string>& corpus,
            Random& random) {
    const std::size_t at = random.below(body.size() + 1);
    const auto place = static_cast<std::ptrdiff_t>(at);
    switch (random.below(12)) {
        case 0:
            if (at < body.size()) body[at] = static_cast<char>(body[at] ^ (1 << random.below(8)));
            break;
        case 1:
            if (at < body.size()) body[at] = static_cast<char>(random.next());
            break;
        case 2:
            body.insert(body.begin() + place, static_cast<char>(random.pick(BYTES)));
            break;
        case 3:
            body.erase(at, 1 + random.below(8));
            break;
        case 4:
            body.erase(at, 1 + random.below(body.size() + 1));
            break;
        case 5:
            body.insert(at, tokens[random.below(tokens.size())]);
            break;
        case 6:
            body.insert(at, tokens[random.below(tokens.size())] + tokens[random.below(tokens.size())]);
            break;
        case 7: {
            const std::string& token = tokens[random.below(tokens.size())];
            body.replace(at, std::min(token.size(), body.size() - at), token);
            break;
        }
        case 8:
            body.insert(at, piece(body, random, 40));
            break;
        case 9:
            body.insert(at, piece(corpus[random.below(corpus.size())], random, 80));
            break;
        case 10:
            body.insert(at, std::string(1 + random.below(40), body.empty() ? 'a' : body[at % body.size()]));
            break;
        default: {
            const std::string& other = corpus[random.below(corpus.size())];
            body = body.substr(0, at) + other.substr(std::min(other.size(), random.below(other.size() + 1)));
        }
    }
    if (body.size() > LARGEST) body.resize(LARGEST);
}

}  // namespace

std::string mutated(std::string body, const std::vector<std::string>& tokens, const std::vector<std::string>& corpus,
                    Random& random) {
    for (std::size_t left = 1 + random.below(random.one_in(8) ? 24 : 4); left > 0; --left)
        change(body, tokens, corpus, random);
    return body;
}

}  // namespace fuzz
