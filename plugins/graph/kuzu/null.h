// What the engine does not expect of a null: that it has no type.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "binder/binder.h"
#include "catalog/catalog.h"
#include "catalog/catalog_entry/function_catalog_entry.h"
#include "codec.h"
#include "common/exception/binder.h"
#include "common/vector/value_vector.h"
#include "function/list/vector_list_functions.h"
#include "function/scalar_function.h"
#include "main/database.h"
#include "transaction/transaction.h"

namespace tea {

// listType returns the type of a list that is null: that of another argument, or
// of a list of such values. A cast from another type would read its elements.
inline kuzu::common::LogicalType listType(const kuzu::binder::expression_vector& arguments) {
    using kuzu::common::LogicalType;
    using T = kuzu::common::LogicalTypeID;
    for (auto& argument : arguments) {
        auto& type = argument->getDataType();
        if (type.getLogicalTypeID() == T::LIST) {
            return type.copy();
        }
        if (type.getLogicalTypeID() != T::ANY) {
            return LogicalType::LIST(type.copy());
        }
    }
    return LogicalType::LIST(LogicalType::STRING());
}

// typeNull sets the type of an argument that is null where a function needs a
// list or a map. Functions read the type of the elements without a check.
inline void typeNull(kuzu::binder::Expression& argument, const kuzu::binder::expression_vector& arguments, kuzu::common::LogicalTypeID expected, const std::string& function) {
    using kuzu::common::LogicalType;
    using T = kuzu::common::LogicalTypeID;
    if (argument.getDataType().getLogicalTypeID() != T::ANY) {
        return;
    }
    switch (expected) {
    case T::LIST:
        return argument.cast(listType(arguments));
    case T::MAP:
        return argument.cast(LogicalType::MAP(LogicalType::STRING(), LogicalType::STRING()));
    case T::ARRAY:
    case T::STRUCT:
    case T::UNION:
    case T::NODE:
    case T::REL:
    case T::RECURSIVE_REL:
        throw kuzu::common::BinderException("the function " + function + " cannot be called with null");
    default:
        return;
    }
}

// unknown sets the results of list_contains, which IN calls, to null where the
// value is not in a list that has a null: it could be that one. The engine has
// false there, and NOT makes it true.
inline void unknown(const std::vector<std::shared_ptr<kuzu::common::ValueVector>>& arguments, const std::vector<kuzu::common::SelectionVector*>& selected, kuzu::common::ValueVector& results, const kuzu::common::SelectionVector& positions) {
    auto& lists = *arguments[0];
    auto& elements = *kuzu::common::ListVector::getDataVector(&lists);
    if (elements.hasNoNullsGuarantee()) {
        return;
    }
    for (auto i = 0u; i < positions.getSelSize(); i++) {
        auto result = positions[i];
        if (results.isNull(result) || results.getValue<bool>(result)) {
            continue;
        }
        auto list = lists.getValue<kuzu::common::list_entry_t>((*selected[0])[lists.state->isFlat() ? 0 : i]);
        for (auto j = 0u; j < list.size && !results.isNull(result); j++) {
            results.setNull(result, elements.isNull(list.offset + j));
        }
    }
}

// missingMembers sets the results of json_extract to null where an object has no such
// member. The engine has an empty text there, which is not JSON: a comparison with it is
// true, and a conversion fails.
inline void missingMembers(kuzu::common::ValueVector& results, const kuzu::common::SelectionVector& positions) {
    if (results.dataType.getPhysicalType() != kuzu::common::PhysicalTypeID::STRING) {
        return; // of several members
    }
    for (auto i = 0u; i < positions.getSelSize(); i++) {
        auto result = positions[i];
        if (!results.isNull(result) && results.getValue<kuzu::common::ku_string_t>(result).len == 0) {
            results.setNull(result, true);
        }
    }
}

// refuseBooleans throws if a part of a truth value is asked for: x IN list[1:2] means
// (x IN list)[1:2] to the parser, and the engine would take a part of a text.
inline void refuseBooleans(const kuzu::binder::expression_vector& arguments) {
    if (!arguments.empty() && arguments[0]->getDataType().getLogicalTypeID() == kuzu::common::LogicalTypeID::BOOL) {
        throw kuzu::common::BinderException("[...] takes a part of a list, and this is a truth value; write x IN (list[1:2]) with brackets");
    }
}

// typeNulls applies typeNull to the arguments of all functions of a database.
inline void typeNulls(kuzu::main::Database& database) {
    using kuzu::function::ScalarBindFuncInput;
    auto transaction = &kuzu::transaction::DUMMY_TRANSACTION;
    for (auto entry : database.getCatalog()->getFunctionEntries(transaction)) {
        if (entry->getType() != kuzu::catalog::CatalogEntryType::SCALAR_FUNCTION_ENTRY) {
            continue;
        }
        for (auto& each : entry->getFunctionSet()) {
            auto function = static_cast<kuzu::function::ScalarFunction*>(each.get());
            if (function->name == kuzu::function::ListSliceFunction::name || function->name == kuzu::function::ListExtractFunction::name) {
                function->bindFunc = [bind = function->bindFunc](const ScalarBindFuncInput& input) {
                    refuseBooleans(input.arguments);
                    return bind ? bind(input) : std::make_unique<kuzu::function::FunctionBindData>(kuzu::common::LogicalType(static_cast<kuzu::function::ScalarFunction*>(input.definition)->returnTypeID));
                };
            }
            if (function->name == "json_extract") {
                function->execFunc = [engine = function->execFunc](auto& arguments, auto& selected, auto& results, auto positions, auto data) {
                    engine(arguments, selected, results, positions, data);
                    missingMembers(results, *positions);
                };
            }
            if (!function->bindFunc || function->parameterTypeIDs.empty()) {
                continue;
            }
            function->bindFunc = [bind = function->bindFunc](const ScalarBindFuncInput& input) {
                auto& types = input.definition->parameterTypeIDs;
                for (auto i = 0u; i < input.arguments.size(); i++) {
                    typeNull(*input.arguments[i], input.arguments, types[input.definition->isVarLength || i >= types.size() ? 0 : i], input.definition->name);
                }
                auto bound = bind(input);
                if (input.definition->name == kuzu::function::ListContainsFunction::name) {
                    auto& execute = static_cast<kuzu::function::ScalarFunction*>(input.definition)->execFunc;
                    execute = [engine = execute](auto& arguments, auto& selected, auto& results, auto positions, auto data) {
                        engine(arguments, selected, results, positions, data);
                        unknown(arguments, selected, results, *positions);
                    };
                }
                return bound;
            };
        }
    }
}

// Parameters are values by name, as the binder takes them.
using Parameters = std::unordered_map<std::string, std::shared_ptr<kuzu::common::Value>>;

// requireParameters throws if a query has a parameter that was not passed. The
// engine takes such a one for null.
inline void requireParameters(const Parameters& used, Reader passed) {
    auto given = passed.parameters();
    std::string missing;
    for (auto& [name, value] : used) {
        if (!given.contains(name) && (missing.empty() || name < missing)) {
            missing = name;
        }
    }
    if (!missing.empty()) {
        throw ParameterException("the parameter $" + missing + " is not in params");
    }
}

} // namespace tea
