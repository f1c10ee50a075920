//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

// The allowed parts of a statement's tree; see guard. Everything else is refused,
// so that a new version of DuckDB cannot add anything.

// expressions are the classes of expressions with their types.
var expressions = map[string]map[string]bool{
	"BETWEEN":    words("COMPARE_BETWEEN COMPARE_NOT_BETWEEN"),
	"CASE":       words("CASE_EXPR"),
	"CAST":       words("OPERATOR_CAST"),
	"COLLATE":    words("COLLATE"),
	"COLUMN_REF": words("COLUMN_REF"),
	"COMPARISON": words(`COMPARE_EQUAL COMPARE_NOTEQUAL COMPARE_LESSTHAN COMPARE_GREATERTHAN COMPARE_LESSTHANOREQUALTO
		COMPARE_GREATERTHANOREQUALTO COMPARE_DISTINCT_FROM COMPARE_NOT_DISTINCT_FROM`),
	"CONJUNCTION": words("CONJUNCTION_AND CONJUNCTION_OR"),
	"CONSTANT":    words("VALUE_CONSTANT"),
	"FUNCTION":    words("FUNCTION"),
	"LAMBDA":      words("LAMBDA"),
	"OPERATOR": words(`OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_COALESCE OPERATOR_NULLIF OPERATOR_TRY OPERATOR_UNPACK
		COMPARE_IN COMPARE_NOT_IN ARRAY_EXTRACT ARRAY_SLICE STRUCT_EXTRACT ARRAY_CONSTRUCTOR ARROW GROUPING_FUNCTION`),
	"PARAMETER":            words("VALUE_PARAMETER"),
	"POSITIONAL_REFERENCE": words("POSITIONAL_REFERENCE"),
	"STAR":                 words("STAR"),
	"SUBQUERY":             words("SUBQUERY"),
	"TYPE":                 words("TYPE"),
	"WINDOW": words(`WINDOW_AGGREGATE WINDOW_RANK WINDOW_RANK_DENSE WINDOW_NTILE WINDOW_PERCENT_RANK WINDOW_CUME_DIST WINDOW_ROW_NUMBER
		WINDOW_FIRST_VALUE WINDOW_LAST_VALUE WINDOW_LEAD WINDOW_LAG WINDOW_NTH_VALUE WINDOW_FILL`),
}

// plain are nodes that need no check besides their parts: queries, the parts of a
// FROM, modifiers, orders, and details of types.
var plain = words(`
	SET_OPERATION_NODE RECURSIVE_CTE_NODE
	SUBQUERY JOIN EMPTY EXPRESSION_LIST
	ORDER_MODIFIER LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER DISTINCT_MODIFIER
	ORDER_DEFAULT ASCENDING DESCENDING
	GENERIC_TYPE_INFO DECIMAL_TYPE_INFO LIST_TYPE_INFO STRUCT_TYPE_INFO ARRAY_TYPE_INFO STRING_TYPE_INFO
`)

// parts are the fields that may have a value in any node. The last two lines
// are for DuckDB 2.0.
var parts = words(`
	aggregate_handling aggregates alias aliases arg_orders array_size_type case_checks cast_type catalog catalog_name child child_type child_types
	children class collation column column_name_alias column_names columns comparison_type condition cte_map cte_name days default_expr
	delim_flipped distinct distinct_on_targets duplicate_eliminated_columns else_expr end end_expr entries error exclude_clause exclude_list
	expected_names expected_types expr expression expressions filter filter_expr first from_table function function_name group_expressions
	group_sets groups having id identifier ignore_nulls include_nulls index input is_null is_operator is_percentage join_type key key_targets left
	lhs limit lower map materialized method micros modifiers months name named_param_map node null_order offset offset_expr order_bys orders
	partitions pivot_expressions pivots position qualified_columns qualified_exclude_list qualify query query_location ref_type relation_name
	rename_list repeatable replace_list right sample sample_size scale schema schema_name second seed select_list setop_all setop_type size source
	star_expr start start_expr statements subquery subquery_type table_name then_expr try_cast type type_info union_all unnest_list unpivot_names
	upper using_columns value values when_expr where_clause width with_ordinality
	arguments is_implicit is_legacy_function_call kind limit_type literal nearest_count nearest_order_type path qualified_name
	query_location_length query_node sample_rate syntax_type text type_expr type_name
`)
