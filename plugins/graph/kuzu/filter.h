// Conditions that the engine's planner loses or does not survive: those of MATCH
// that have no variable, such as $enabled or $role = 'admin', those of WITH after
// constants only, and those of the nodes of shortest paths.
#pragma once

#include <dlfcn.h>

#include <algorithm>

#include "binder/expression/expression.h"
#include "binder/expression/rel_expression.h"
#include "common/enums/query_rel_type.h"
#include "common/exception/binder.h"
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

// Shortest paths lead through nodes that do not meet the condition of the pattern, and
// those of ACYCLIC visit a node more than once.
void kuzu::planner::Planner::appendRecursiveExtend(const std::shared_ptr<binder::NodeExpression>& bound, const std::shared_ptr<binder::NodeExpression>& neighbor, const std::shared_ptr<binder::RelExpression>& rel, common::ExtendDirection direction, LogicalPlan& plan) {
    using Function = void (*)(Planner*, const std::shared_ptr<binder::NodeExpression>&, const std::shared_ptr<binder::NodeExpression>&, const std::shared_ptr<binder::RelExpression>&, common::ExtendDirection, LogicalPlan&);
    static const auto original = tea::engineOwn<Function>("_ZN4kuzu7planner7Planner21appendRecursiveExtendERKSt10shared_ptrINS_6binder14NodeExpressionEES7_RKS2_INS3_13RelExpressionEENS_6common15ExtendDirectionERNS0_11LogicalPlanE");
    using T = common::QueryRelType;
    auto type = rel->getRelType();
    if (type == T::VARIABLE_LENGTH_ACYCLIC) {
        throw common::BinderException("ACYCLIC is refused, since Kuzu returns paths that visit an entity twice; write MATCH p = (a)-[:Relation* TRAIL 1..5]->(b) WHERE is_acyclic(p)");
    }
    if (rel->getRecursiveInfo()->nodePredicate != nullptr && type != T::VARIABLE_LENGTH_WALK && type != T::VARIABLE_LENGTH_TRAIL) {
        throw common::BinderException("a pattern with SHORTEST cannot have a condition on the entities of the path, which Kuzu ignores; use TRAIL instead of SHORTEST");
    }
    original(this, bound, neighbor, rel, direction, plan);
}
