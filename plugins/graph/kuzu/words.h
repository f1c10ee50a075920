// The full-text search of a graph: one scan of the words of all entities, for
// any number of words. Kuzu's planner has a scan for each query instead, which
// waits for other threads.
#pragma once

#include <algorithm>
#include <string_view>

#include "lookup.h"
#include "storage/storage_utils.h"

namespace tea {

// Scan reads columns of all nodes of a table that a transaction sees.
class Scan {
public:
    Scan(kuzu::main::ClientContext* context, kuzu::catalog::TableCatalogEntry* entry, const std::vector<std::string>& columns)
        : context{context}, table{static_cast<kuzu::storage::NodeTable*>(context->getStorageManager()->getTable(entry->getTableID()))} {
        std::vector<kuzu::common::column_id_t> numbers;
        std::vector<LogicalType> types;
        for (auto& column : columns) {
            numbers.push_back(entry->getColumnID(column));
            types.push_back(entry->getProperty(column).getType().copy());
        }
        values = kuzu::storage::Table::constructDataChunk(context->getMemoryManager(), std::move(types));
        nodes = std::make_unique<kuzu::common::ValueVector>(LogicalType::INTERNAL_ID(), context->getMemoryManager(), values.state);
        std::vector<kuzu::common::ValueVector*> outputs;
        for (auto i = 0u; i < columns.size(); i++) {
            outputs.push_back(&values.getValueVectorMutable(i));
        }
        state = std::make_unique<kuzu::storage::NodeTableScanState>(nodes.get(), outputs, values.state);
        state->setToTable(context->getTransaction(), table, numbers);
    }

    // each calls f with the position of each node, until f returns false. A node
    // that the transaction does not see is not selected.
    template<typename F>
    void each(F f) {
        auto transaction = context->getTransaction();
        const uint64_t end = table->getNumTotalRows(transaction);
        for (uint64_t at = 0; at < end;) {
            stopped(context);
            for (auto vector : state->outputVectors) {
                vector->resetAuxiliaryBuffer();
            }
            table->initScanState(transaction, *state, table->getTableID(), at);
            auto group = kuzu::storage::StorageUtils::getStartOffsetOfNodeGroup(state->nodeGroupIdx + 1);
            auto result = state->scanNext(transaction, at, std::min({end, group, at + kuzu::common::DEFAULT_VECTOR_CAPACITY}) - at);
            if (result == kuzu::storage::NODE_GROUP_SCAN_EMPTY_RESULT || result.numRows == 0) {
                return;
            }
            auto& selected = values.state->getSelVector();
            for (auto i = 0u; i < selected.getSelSize(); i++) {
                if (!f(selected[i])) {
                    return;
                }
            }
            at += result.numRows;
        }
    }

    std::string_view text(uint32_t column, uint64_t position) {
        return values.getValueVectorMutable(column).getValue<kuzu::common::ku_string_t>(position).getAsStringView();
    }

private:
    kuzu::main::ClientContext* context;
    kuzu::storage::NodeTable* table;
    kuzu::common::DataChunk values;
    std::unique_ptr<kuzu::common::ValueVector> nodes;
    std::unique_ptr<kuzu::storage::NodeTableScanState> state;
};

// Searching selects entities.
struct Searching {
    std::string start; // of the keys in the namespace; the id follows
    // Words are between spaces, as in the column.
    std::vector<std::string> words;
    std::unordered_set<std::string_view> types; // empty = all
    // all asks for the entities that have all words, in the order of their ids;
    // otherwise for those of each word.
    bool all;
    uint64_t limit; // of entities, or of those of each word
};

// having returns a row for each word that an entity has: the place of the word
// and the id.
inline Writer having(kuzu::main::ClientContext* context, const Searching& s) {
    enum { Key, Words, Type };
    Reading reading(context);
    auto entities = context->getCatalog()->getTableCatalogEntry(context->getTransaction(), "Entity");
    std::vector<std::string> columns = {"key", "words"};
    if (!s.types.empty()) {
        columns.push_back("type");
    }
    Scan scan(context, entities, columns);
    std::vector<std::vector<std::string>> found(s.all ? 1 : s.words.size());
    size_t open = found.size(); // lists that are not full
    scan.each([&](auto at) {
        auto key = scan.text(Key, at);
        if (key.compare(0, s.start.size(), s.start) != 0) {
            return true;
        }
        auto words = scan.text(Words, at);
        auto wanted = [&](const std::string& word) { return words.find(word) != std::string_view::npos; };
        if (s.all ? !std::all_of(s.words.begin(), s.words.end(), wanted) : std::none_of(s.words.begin(), s.words.end(), wanted)) {
            return true;
        }
        if (!s.types.empty() && !s.types.contains(scan.text(Type, at))) {
            return true;
        }
        std::string id(key.substr(s.start.size()));
        for (size_t i = 0; i < found.size(); i++) {
            if (s.all || (found[i].size() < s.limit && wanted(s.words[i]))) {
                found[i].push_back(id);
                open -= !s.all && found[i].size() == s.limit;
            }
        }
        return open > 0;
    });
    Writer rows;
    uint32_t count = 0;
    for (size_t i = 0; i < found.size(); i++) {
        auto end = found[i].begin() + std::min(found[i].size(), s.limit);
        std::partial_sort(found[i].begin(), end, found[i].end());
        for (auto id = found[i].begin(); id != end; id++, count++) {
            rows.integer(i);
            rows.string(*id);
        }
    }
    return table({"word", "id"}, count, rows);
}

} // namespace tea
