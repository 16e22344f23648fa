// SPDX-License-Identifier: MIT
#include "suite.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "cover.h"

const Axis perms{"-iperm=0 -operm=0", "-iperm=1 -operm=1"};
const Axis modes{"-mode=0", "-mode=1"};
const Axis lse{"-lse=0", "-lse=1"};
const Axis inits{"-init=uf", "-init=nf", "-init=ni", "-init=ui", "-init=tf"};
const Axis ratios{"-h=1", "-h=3 -h_k=1", "-h=4 -h_k=2", "-h=8 -h_k=1", "-h=12 -h_k=4", "-h=7"};

const Axis masks{"-mask=0",      "-mask=n",      "-mask=1",       "-mask=2",       "-mask=t",          "-mask=b",
                 "-mask=t:-1,0", "-mask=b:-1,0", "-mask=t:3,5",   "-mask=b:10,11", "-mask=t:0,0",      "-mask=b:0,0",
                 "-mask=t:5,-1", "-mask=b:5,-1", "-mask=t:-1,-1", "-mask=xt:-1",   "-mask=xb:-1",      "-mask=xt:4",
                 "-mask=xb:16",  "-mask=g:16,8", "-mask=g:1,64",  "-mask=g:200,1", "-mask=t:1000,1000"};

const Axis group_paddings{"-b=1 -s=64 -s_qpad=64",
                          "-b=1 -s=32 -s_qpad=64",
                          "-b=2 -s=128,64 -s_k=128,64 -s_qpad=256,128",
                          "-b=2 -s=128,64 -s_k=128,64 -s_kpad=256,128",
                          "-b=3 -s=1,64,100 -s_k=50,1,128 -s_qpad=64,64,128 -s_kpad=64,64,128",
                          "-b=4 -s=0,5,0,128 -s_k=64,0,0,128 -s_qpad=16,16,16,128 -s_kpad=64,16,1,128",
                          "-b=2 -s=1,1 -s_k=1,1 -s_qpad=128,128 -s_kpad=128,128",
                          "-b=2 -s=255,256 -s_k=256,255 -s_qpad=256,256 -s_kpad=256,256",
                          "-b=1 -s=1 -s_k=256 -s_qpad=1 -s_kpad=257"};

const Axis effective_lengths{"-b=1 -s=64 -q_eff_lens=32",
                             "-b=1 -s=64 -kv_eff_lens=32",
                             "-b=2 -s=128 -q_eff_lens=128,64 -kv_eff_lens=128,64",
                             "-b=3 -s=100 -s_k=200 -q_eff_lens=1,100,50 -kv_eff_lens=200,1,0",
                             "-b=2 -s=256 -q_eff_lens=0,256",
                             "-b=2 -s=64 -s_k=256 -q_eff_lens=1,1 -kv_eff_lens=1,1",
                             "-b=2 -s=64 -s_k=256 -q_eff_lens=0,0 -kv_eff_lens=0,0",
                             "-b=2 -s=129 -s_k=129 -q_eff_lens=128,127 -kv_eff_lens=127,128"};

std::vector<int> edges(bool gpu, uint16_t tessera_fmha_fwd_tile::*tile) {
    std::vector<int> lengths{1, 2, 17};
    const tessera_table *table = tessera_fmha_fwd_get_table();
    for (uint32_t i = 0; i < table->row_count; i++) {
        const auto *row = reinterpret_cast<const tessera_fmha_fwd_instance *>(tessera_row(table, i));
        if ((row->base.symbol != nullptr) == gpu)
            for (int near : {-1, 0, 1}) lengths.push_back(row->tile.*tile + near);
    }
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    return lengths;
}

std::string test_name(const std::string &arguments) {
    std::string name;
    for (char c : arguments) {
        if (std::isalnum(static_cast<unsigned char>(c)))
            name += c;
        else if (c == '-' && (name.empty() || name.back() == ' '))
            continue;
        else
            name += c == ' ' ? ' ' : '_';
    }
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
}

namespace {

class Matrix : public testing::Test {
  public:
    Matrix(std::string arguments, void (*run)(const std::string &)) : arguments(std::move(arguments)), run(run) {}
    void TestBody() override { run(arguments); }

  private:
    const std::string arguments;
    void (*const run)(const std::string &);
};

std::string spell(const std::vector<Axis> &axes, const Combination &one) {
    std::string arguments;
    for (size_t axis = 0; axis < axes.size(); axis++)
        arguments += (arguments.empty() ? "" : " ") + axes[axis][one[axis]];
    return arguments;
}

std::vector<size_t> sizes_of(const std::vector<Axis> &axes) {
    std::vector<size_t> sizes;
    for (const Axis &axis : axes) sizes.push_back(axis.size());
    return sizes;
}

std::vector<std::string> combinations(const Suite &suite) {
    std::vector<Axis> axes = suite.more;
    axes.insert(axes.end(), suite.ck.begin(), suite.ck.end());
    std::vector<std::string> all;
    if (std::any_of(axes.begin(), axes.end(), [](const Axis &axis) { return axis.empty(); })) return all;
    for (const Combination &one : PairwiseCover(sizes_of(axes)).combinations()) all.push_back(spell(axes, one));
    if (!test_all()) return all;
    const auto turns = PairwiseCover(sizes_of(suite.more)).combinations();
    size_t turn = 0;
    for (const Combination &one : product(sizes_of(suite.ck)))
        all.push_back(spell(suite.more, turns[turn++ % turns.size()]) + " " + spell(suite.ck, one));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

unsigned number_of(const char *variable, unsigned otherwise) {
    const char *text = std::getenv(variable);
    return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

// Asked of one problem after the other.
bool is_due() {
    static const unsigned days = test_all() ? 1 : std::max(1U, number_of("TESSERA_TEST_DAYS", 1));
    static unsigned next = number_of("TESSERA_TEST_SEED", 0);
    return next++ % days == 0;
}

} // namespace

void register_suite(const Suite &suite) {
    const auto run = suite.run;
    for (const std::string &arguments : combinations(suite)) {
        if (!is_due()) continue;
        testing::RegisterTest(suite.name, test_name(arguments).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [=]() -> Matrix * { return new Matrix(arguments, run); });
    }
}
