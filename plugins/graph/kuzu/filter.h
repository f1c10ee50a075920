// Conditions that the engine's planner loses or does not survive: those of MATCH
// that have no variable, such as $enabled or $role = 'admin', and those of WITH
// after constants only.
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

namespace tea {

// engineOwn returns a function of the engine that one of the bridge replaces.
template<typename Function>
Function engineOwn(const char* symbol) {
    auto function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, symbol));
    if (function == nullptr) {
        throw std::runtime_error(std::string("the library of Kuzu lacks ") + symbol);
    }
    return function;
}

} // namespace tea

// The engine's calls are resolved to the following functions instead of its own
// ones, which they call.

// The planner assigns conditions without a variable to the pattern and drops them
// there, so that each of them holds. Filtering twice by another one does no harm.
kuzu::planner::LogicalPlan kuzu::planner::Planner::planQueryGraph(const binder::QueryGraph& graph, const QueryGraphPlanningInfo& info) {
    using Function = LogicalPlan (*)(Planner*, const binder::QueryGraph&, const QueryGraphPlanningInfo&);
    static const auto original = tea::engineOwn<Function>("_ZN4kuzu7planner7Planner14planQueryGraphERKNS_6binder10QueryGraphERKNS0_22QueryGraphPlanningInfoE");
    auto plan = original(this, graph, info);
    for (auto& predicate : info.predicates) {
        if (tea::isFixed(*predicate)) {
            appendFilter(predicate, plan);
        }
    }
    return plan;
}

// The plan of a WITH that has constants only is empty, and the planner reads its last
// operator: WITH 1 AS x WHERE x > 0 ended the process.
void kuzu::planner::Planner::appendFilter(const std::shared_ptr<binder::Expression>& predicate, LogicalPlan& plan) {
    using Function = void (*)(Planner*, const std::shared_ptr<binder::Expression>&, LogicalPlan&);
    static const auto original = tea::engineOwn<Function>("_ZN4kuzu7planner7Planner12appendFilterERKSt10shared_ptrINS_6binder10ExpressionEERNS0_11LogicalPlanE");
    if (plan.isEmpty()) {
        appendDummyScan(plan);
    }
    original(this, predicate, plan);
}
