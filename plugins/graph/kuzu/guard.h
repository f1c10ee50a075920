// What a query of a workflow may do. The statement is parsed by the engine's
// parser, which touches no file, before anything else looks at it: planning
// already opens the files that a query names.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>

#include "binder/bound_statement.h"
#include "binder/expression/node_rel_expression.h"
#include "binder/query/bound_regular_query.h"
#include "binder/query/updating_clause/bound_delete_clause.h"
#include "binder/query/updating_clause/bound_insert_clause.h"
#include "binder/query/updating_clause/bound_merge_clause.h"
#include "binder/query/updating_clause/bound_set_clause.h"
#include "catalog/catalog_entry/table_catalog_entry.h"
#include "common/exception/io.h"
#include "common/file_system/file_info.h"
#include "common/file_system/file_system.h"
#include "common/string_utils.h"
#include "parser/ddl/create_table.h"
#include "parser/ddl/drop.h"
#include "parser/expression/parsed_function_expression.h"
#include "parser/parser.h"
#include "parser/query/reading_clause/in_query_call_clause.h"
#include "parser/query/regular_query.h"

namespace tea {

// Access is what a statement may do: everything, which is for the plugin's own,
// or what a query of a workflow that reads or writes may.
enum class Access : int64_t { All = 0, Read = 1, Write = 2 };

// RefusedException says why a statement is not executed.
class RefusedException : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

inline const char* name(kuzu::common::StatementType type) {
    using T = kuzu::common::StatementType;
    switch (type) {
    case T::CREATE_TABLE:
    case T::CREATE_SEQUENCE:
    case T::CREATE_TYPE:
    case T::CREATE_MACRO:
    case T::DROP:
    case T::ALTER:
        return "a statement that changes the schema";
    case T::COPY_TO:
    case T::COPY_FROM:
        return "COPY, which reads and writes files as graph.import and graph.export do,";
    case T::STANDALONE_CALL:
    case T::STANDALONE_CALL_FUNCTION:
        return "CALL of a setting or procedure";
    case T::TRANSACTION:
        return "a transaction statement";
    case T::EXTENSION:
    case T::EXTENSION_CLAUSE:
        return "a statement about extensions";
    case T::EXPORT_DATABASE:
    case T::IMPORT_DATABASE:
        return "EXPORT or IMPORT DATABASE, for which there are graph.backup, graph.restore, graph.export and graph.import,";
    case T::ATTACH_DATABASE:
    case T::DETACH_DATABASE:
    case T::USE_DATABASE:
        return "ATTACH, DETACH or USE";
    case T::EXPLAIN:
        return "EXPLAIN or PROFILE";
    default:
        return "this kind of statement";
    }
}

// permitClauses checks the clauses of a query or of one part of it.
template<typename T>
void permitClauses(const T& part, Access access) {
    using kuzu::common::ClauseType;
    static const std::unordered_set<std::string> functions{"SHOW_TABLES", "TABLE_INFO", "SHOW_CONNECTION"};
    if (part.getNumUpdatingClauses() > 0 && access != Access::Write) {
        throw RefusedException("the query writes; set read_only: false");
    }
    for (auto i = 0u; i < part.getNumReadingClauses(); i++) {
        auto clause = part.getReadingClause(i);
        switch (clause->getClauseType()) {
        case ClauseType::MATCH:
        case ClauseType::UNWIND:
            break;
        case ClauseType::IN_QUERY_CALL: {
            auto call = static_cast<const kuzu::parser::InQueryCallClause*>(clause)->getFunctionExpression();
            if (call->getExpressionType() != kuzu::common::ExpressionType::FUNCTION) {
                throw RefusedException("CALL of an expression is not allowed");
            }
            auto function = static_cast<const kuzu::parser::ParsedFunctionExpression*>(call);
            if (!functions.contains(function->getNormalizedFunctionName())) {
                throw RefusedException("CALL " + function->getFunctionName() + " is not allowed");
            }
            break;
        }
        default:
            throw RefusedException("LOAD FROM is not allowed; graph.import reads files");
        }
    }
}

// permitTable refuses the tables of the graph. Names are not case-sensitive.
inline void permitTable(std::string table, const char* what) {
    static const std::unordered_set<std::string> own{"ENTITY", "RELATION", "META"};
    auto upper = table;
    kuzu::common::StringUtils::toUpper(upper);
    if (own.contains(upper)) {
        throw RefusedException(std::string(what) + " of the table " + table + " is not allowed: the actions of the graph change it");
    }
}

// permitSchema returns if a statement creates or drops a table of a workflow's own.
inline void permitSchema(const kuzu::parser::Statement& statement) {
    using T = kuzu::common::StatementType;
    if (statement.getStatementType() == T::CREATE_TABLE) {
        auto& create = static_cast<const kuzu::parser::CreateTable&>(statement);
        if (create.getSource() != nullptr) {
            throw RefusedException("CREATE TABLE AS is not allowed");
        }
        return permitTable(create.getInfo()->tableName, "CREATE");
    }
    auto& drop = static_cast<const kuzu::parser::Drop&>(statement).getDropInfo();
    if (drop.dropType != kuzu::common::DropType::TABLE) {
        throw RefusedException(std::string(name(T::DROP)) + " is not allowed");
    }
    permitTable(drop.name, "DROP");
}

// permit returns the statement if text is one query of the clauses MATCH, UNWIND,
// WITH and RETURN; for a query that writes also of CREATE, MERGE, SET and DELETE,
// or one statement that creates or drops a table. Otherwise it throws a
// RefusedException, or what the parser throws.
inline std::shared_ptr<kuzu::parser::Statement> permit(std::string_view text, Access access) {
    using T = kuzu::common::StatementType;
    auto statements = kuzu::parser::Parser::parseQuery(text);
    if (statements.size() != 1) {
        throw RefusedException("one statement is allowed, not " + std::to_string(statements.size()));
    }
    auto type = statements[0]->getStatementType();
    if (access == Access::Write && (type == T::CREATE_TABLE || type == T::DROP)) {
        permitSchema(*statements[0]);
        return statements[0];
    }
    if (type != T::QUERY) {
        throw RefusedException(std::string(name(type)) + " is not allowed");
    }
    auto& query = dynamic_cast<kuzu::parser::RegularQuery&>(*statements[0]);
    for (auto i = 0u; i < query.getNumSingleQueries(); i++) {
        auto single = query.getSingleQuery(i);
        for (auto j = 0u; j < single->getNumQueryParts(); j++) {
            permitClauses(*single->getQueryPart(j), access);
        }
        permitClauses(*single, access);
    }
    return statements[0];
}

// Changes are what the updating clauses of a query reach.
struct Changes {
    bool creates = false;
    bool deletes = false;

    void reaches(const kuzu::binder::Expression& pattern, const char* what) {
        for (auto entry : static_cast<const kuzu::binder::NodeOrRelExpression&>(pattern).getEntries()) {
            permitTable(entry->getName(), what);
        }
    }

    void clause(const kuzu::binder::BoundUpdatingClause& clause) {
        using kuzu::common::ClauseType;
        switch (clause.getClauseType()) {
        case ClauseType::INSERT:
            for (auto& info : static_cast<const kuzu::binder::BoundInsertClause&>(clause).getInfos()) {
                reaches(*info.pattern, "CREATE");
                creates = true;
            }
            return;
        case ClauseType::SET:
            return set(static_cast<const kuzu::binder::BoundSetClause&>(clause).getInfos());
        case ClauseType::DELETE_: {
            auto& all = static_cast<const kuzu::binder::BoundDeleteClause&>(clause);
            for (auto& info : all.getNodeInfos()) {
                reaches(*info.pattern, "DELETE");
                deletes = true;
            }
            for (auto& info : all.getRelInfos()) {
                reaches(*info.pattern, "DELETE");
            }
            return;
        }
        case ClauseType::MERGE: {
            auto& merge = static_cast<const kuzu::binder::BoundMergeClause&>(clause);
            for (auto& info : merge.getInsertInfosRef()) {
                reaches(*info.pattern, "MERGE");
                creates = true;
            }
            set(merge.getOnMatchSetInfosRef());
            return set(merge.getOnCreateSetInfosRef());
        }
        default:
            throw RefusedException("this kind of clause is not allowed");
        }
    }

    void set(const std::vector<kuzu::binder::BoundSetPropertyInfo>& infos) {
        for (auto& info : infos) {
            reaches(*info.pattern, "SET");
        }
    }
};

// permitChanges throws if a query changes a table of the graph, or deletes and
// creates nodes: the engine cannot replay a log in which a deleted key is stored
// again.
inline void permitChanges(const kuzu::binder::BoundStatement& statement) {
    auto& query = static_cast<const kuzu::binder::BoundRegularQuery&>(statement);
    Changes changes;
    for (auto i = 0u; i < query.getNumSingleQueries(); i++) {
        auto single = query.getSingleQuery(i);
        for (auto j = 0u; j < single->getNumQueryParts(); j++) {
            auto part = single->getQueryPart(j);
            for (auto k = 0u; k < part->getNumUpdatingClause(); k++) {
                changes.clause(*part->getUpdatingClause(k));
            }
        }
    }
    if (changes.creates && changes.deletes) {
        throw RefusedException("a query cannot both delete and create; use two");
    }
}

// OnlyDatabase is a file system that takes every path except those of the
// database and refuses all that is asked of it. It is what stops a statement
// that permit overlooks.
class OnlyDatabase final : public kuzu::common::FileSystem {
    using FileInfo = kuzu::common::FileInfo;
    using Context = kuzu::main::ClientContext;

public:
    explicit OnlyDatabase(const std::string& database) {
        for (auto suffix : {"", ".wal", ".shadow", ".tmp"}) {
            own.insert(database + suffix);
        }
    }

    bool canHandleFile(const std::string_view path) const override { return !own.contains(std::string(path)); }

    std::unique_ptr<FileInfo> openFile(const std::string& path, kuzu::common::FileOpenFlags, Context*) override { refuse(path); }
    std::vector<std::string> glob(Context*, const std::string& path) const override { refuse(path); }
    void overwriteFile(const std::string&, const std::string& to) override { refuse(to); }
    void copyFile(const std::string& from, const std::string&) override { refuse(from); }
    void createDir(const std::string& dir) const override { refuse(dir); }
    void removeFileIfExists(const std::string& path, const Context*) override { refuse(path); }
    bool fileOrPathExists(const std::string& path, Context*) override { refuse(path); }
    std::string expandPath(Context*, const std::string& path) const override { refuse(path); }
    void syncFile(const FileInfo& file) const override { refuse(file.path); }

protected:
    void readFromFile(FileInfo& file, void*, uint64_t, uint64_t) const override { refuse(file.path); }
    int64_t readFile(FileInfo& file, void*, size_t) const override { refuse(file.path); }
    int64_t seek(FileInfo& file, uint64_t, int) const override { refuse(file.path); }
    uint64_t getFileSize(const FileInfo& file) const override { refuse(file.path); }

private:
    [[noreturn]] static void refuse(const std::string&) { throw RefusedException("a query cannot reach files"); }

    std::unordered_set<std::string> own;
};

} // namespace tea
