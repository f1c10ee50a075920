// Conditions of MATCH that have no variable, such as $enabled or $role = 'admin'.
// The engine's planner assigns them to the pattern and drops them there, so that
// each of them holds.
#pragma once

#include <dlfcn.h>

#include <algorithm>

#include "binder/expression/expression.h"
#include "planner/planner.h"

namespace tea {

// isFixed reports whether an expression has no variable in sight: of one that is
// not only children, such as CASE, all is fixed.
inline bool isFixed(const kuzu::binder::Expression& expression) {
    using kuzu::common::ExpressionType;
    switch (expression.expressionType) {
    case ExpressionType::PROPERTY:
    case ExpressionType::VARIABLE:
    case ExpressionType::PATTERN:
    case ExpressionType::SUBQUERY:
        return false;
    default:
        return std::ranges::all_of(expression.getChildren(), [](auto& child) { return isFixed(*child); });
    }
}

} // namespace tea

// The engine's calls are resolved to this function instead of its own one, which
// it calls. Filtering twice by a condition that is not fixed does no harm.
kuzu::planner::LogicalPlan kuzu::planner::Planner::planQueryGraph(const binder::QueryGraph& graph, const QueryGraphPlanningInfo& info) {
    using Function = LogicalPlan (*)(Planner*, const binder::QueryGraph&, const QueryGraphPlanningInfo&);
    static const auto original = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "_ZN4kuzu7planner7Planner14planQueryGraphERKNS_6binder10QueryGraphERKNS0_22QueryGraphPlanningInfoE"));
    if (original == nullptr) {
        throw std::runtime_error("the library of Kuzu lacks Planner::planQueryGraph");
    }
    auto plan = original(this, graph, info);
    for (auto& predicate : info.predicates) {
        if (tea::isFixed(*predicate)) {
            appendFilter(predicate, plan);
        }
    }
    return plan;
}
