// Reads that Kuzu's query language has no fast form for: a list of entities by
// key, and the relations of a list of entities. Both use the index of the keys
// and the adjacency lists that the engine's graph algorithms use. The tables are
// those of store.go; their columns have no nulls.
#pragma once

#include <unordered_set>

#include "catalog/catalog.h"
#include "catalog/catalog_entry/rel_group_catalog_entry.h"
#include "codec.h"
#include "common/vector/value_vector.h"
#include "graph/on_disk_graph.h"
#include "main/client_context.h"
#include "storage/storage_manager.h"
#include "storage/table/node_table.h"
#include "transaction/transaction_context.h"

namespace tea {

// Reading is a read-only transaction of a connection, or the one it is in.
class Reading {
public:
    explicit Reading(kuzu::main::ClientContext* context) : transactions{context->getTransactionContext()} {
        if (!transactions->hasActiveTransaction()) {
            transactions->beginReadTransaction();
            owned = true;
        }
    }
    ~Reading() {
        try {
            if (owned) {
                transactions->commit();
            }
        } catch (...) { // a read-only transaction has nothing to lose
        }
    }
    Reading(const Reading&) = delete;

private:
    kuzu::transaction::TransactionContext* transactions;
    bool owned = false;
};

// Tables are the two tables of a graph, as a transaction sees them.
class Tables {
public:
    explicit Tables(kuzu::main::ClientContext* context) : context{context}, key(LogicalType::STRING(), context->getMemoryManager()) {
        auto transaction = context->getTransaction();
        entities = context->getCatalog()->getTableCatalogEntry(transaction, "Entity");
        relations = context->getCatalog()->getTableCatalogEntry(transaction, "Relation");
        table = static_cast<kuzu::storage::NodeTable*>(context->getStorageManager()->getTable(entities->getTableID()));
        graph = std::make_unique<kuzu::graph::OnDiskGraph>(context, kuzu::graph::NativeGraphEntry({entities}, {relations}));
        key.state = kuzu::common::DataChunkState::getSingleValueDataChunkState();
    }

    // find looks up the entity with a key.
    bool find(const std::string& text, kuzu::common::offset_t& offset) {
        key.resetAuxiliaryBuffer();
        kuzu::common::StringVector::addString(&key, 0, text);
        return table->lookupPK(context->getTransaction(), &key, 0, offset);
    }

    kuzu::main::ClientContext* context;
    kuzu::catalog::TableCatalogEntry* entities;
    kuzu::catalog::TableCatalogEntry* relations;
    std::unique_ptr<kuzu::graph::OnDiskGraph> graph;

private:
    kuzu::storage::NodeTable* table;
    kuzu::common::ValueVector key;
};

// stopped throws if the connection was interrupted.
inline void stopped(kuzu::main::ClientContext* context) {
    if (context->interrupted()) {
        throw std::runtime_error("Interrupted.");
    }
}

// entities returns the columns of the entities with some keys, in the order of
// the keys, without those that do not exist.
inline Writer entities(kuzu::main::ClientContext* context, const std::vector<std::string>& keys, const std::vector<std::string>& columns) {
    Reading reading(context);
    Tables tables(context);
    auto scan = tables.graph->prepareVertexScan(tables.entities, columns);
    std::vector<LogicalTypeID> types;
    for (auto& column : columns) {
        types.push_back(tables.entities->getProperty(column).getType().getLogicalTypeID());
    }
    Writer rows;
    uint32_t count = 0;
    for (auto& key : keys) {
        stopped(context);
        kuzu::common::offset_t offset;
        if (!tables.find(key, offset)) {
            continue;
        }
        for (auto chunk : tables.graph->scanVertices(offset, offset + 1, *scan)) {
            if (chunk.size() == 0) {
                continue;
            }
            for (auto i = 0u; i < types.size(); i++) {
                if (types[i] == LogicalTypeID::INT64) {
                    rows.integer(chunk.getProperties<int64_t>(i)[0]);
                } else {
                    rows.string(chunk.getProperties<kuzu::common::ku_string_t>(i)[0].getAsString());
                }
            }
            count++;
        }
    }
    return table(columns, count, rows);
}

// Following selects relations.
struct Following {
    bool forward, backward;
    std::unordered_set<std::string> types; // empty = all
    bool ever;
    int64_t at;
    uint64_t most;
};

// The first columns of a relation that adjacent returns.
enum RelationColumn { Type = 0, ValidFrom, ValidTo, FirstOther };

// adjacent returns the columns of the relations of the entities with some keys,
// at most most and one more. columns begins with those of RelationColumn. With
// both directions a relation between two of the entities appears twice.
inline Writer adjacent(kuzu::main::ClientContext* context, const std::vector<std::string>& keys, const std::vector<std::string>& columns, const Following& following) {
    Reading reading(context);
    Tables tables(context);
    auto info = tables.graph->getRelInfos(tables.entities->getTableID())[0];
    auto scan = tables.graph->prepareRelScan(*tables.relations, info.relTableID, info.dstTableID, columns);
    Writer rows;
    uint32_t count = 0;
    auto add = [&](auto, const std::vector<kuzu::common::ValueVector*>& values, auto i) {
        if (count > following.most) {
            return;
        }
        if (!following.ever && (values[ValidFrom]->getValue<int64_t>(i) > following.at || values[ValidTo]->getValue<int64_t>(i) <= following.at)) {
            return;
        }
        if (!following.types.empty() && !following.types.contains(values[Type]->getValue<kuzu::common::ku_string_t>(i).getAsString())) {
            return;
        }
        for (auto value : values) {
            switch (value->dataType.getLogicalTypeID()) {
            case LogicalTypeID::INT64:
                rows.integer(value->getValue<int64_t>(i));
                break;
            case LogicalTypeID::DOUBLE:
                rows.floating(value->getValue<double>(i));
                break;
            default:
                rows.string(value->getValue<kuzu::common::ku_string_t>(i).getAsString());
            }
        }
        count++;
    };
    auto follow = [&](kuzu::graph::Graph::EdgeIterator edges) {
        for (auto chunk : edges) {
            stopped(context);
            chunk.forEach(add);
        }
    };
    for (auto& key : keys) {
        stopped(context);
        kuzu::common::offset_t offset;
        if (count > following.most || !tables.find(key, offset)) {
            continue;
        }
        kuzu::common::nodeID_t id{offset, tables.entities->getTableID()};
        if (following.forward) {
            follow(tables.graph->scanFwd(id, *scan));
        }
        if (following.backward) {
            follow(tables.graph->scanBwd(id, *scan));
        }
    }
    return table(columns, count, rows);
}

} // namespace tea
