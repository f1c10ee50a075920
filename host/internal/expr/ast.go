package expr

// node is an expression of the tree. pos fields are byte offsets in the text.
type node interface {
	eval(r *run) any
}

// statement is a piece of a template's body; it writes to the run's output.
type statement interface {
	exec(r *run)
}

// Expressions.
type (
	literal struct{ value any }

	// path is a name with static steps: state.items[0].name.
	path struct {
		root  string
		steps []step
		pos   int
	}
	// attribute is object.name if object is not a path.
	attribute struct {
		object node
		name   string
		pos    int
	}
	// subscript is object[key] with a key that is computed.
	subscript struct {
		object, key node
		pos         int
	}
	// slicing is object[start:stop:step]; absent parts are nil.
	slicing struct {
		object, start, stop, step node
		pos                       int
	}
	listLiteral struct {
		elements []node
		pos      int
	}
	dictLiteral struct {
		keys, values []node
		pos          int
	}
	// unary is + or - before a number.
	unary struct {
		op   byte
		term node
		pos  int
	}
	negation struct{ term node }
	// binary is an arithmetic operator.
	binary struct {
		op          string
		left, right node
		pos         int
	}
	// logical is "and" or "or"; its value is one of its operands, as in Python.
	logical struct {
		or          bool
		left, right node
	}
	// comparison is a chain: a < b <= c.
	comparison struct {
		first node
		rest  []comparand
	}
	comparand struct {
		op   string
		term node
		pos  int
	}
	// conditional is `then if condition else otherwise`; otherwise can be nil.
	conditional struct{ condition, then, otherwise node }

	filtered struct {
		input  node
		name   string
		filter filter
		args   arguments
		pos    int
	}
	tested struct {
		input  node
		name   string
		test   filter
		args   arguments
		negate bool
		pos    int
	}
	// call is name(...): a macro, a loop, or a function.
	call struct {
		name string
		args arguments
		pos  int
	}
	// methodCall is object.name(...).
	methodCall struct {
		object node
		name   string
		args   arguments
		pos    int
	}
)

// step is one static step of a path.
type step struct {
	key   string
	index int
	isKey bool
}

// arguments are the expressions of a call. list and dict are *list and **dict.
type arguments struct {
	positional []node
	named      []namedArgument
	list, dict node
}

type namedArgument struct {
	name  string
	value node
}

// Statements.
type (
	text   struct{ value string }
	output struct {
		value node
		pos   int
	}
	ifStatement struct {
		branches  []ifBranch
		otherwise []statement
	}
	ifBranch struct {
		condition node
		body      []statement
	}
	forStatement struct {
		targets            []string
		items              node
		condition          node
		body, otherwise    []statement
		recursive, isTuple bool
		pos                int
	}
	// setStatement assigns: names, or one attribute of a namespace.
	setStatement struct {
		targets   []string
		attribute string
		isTuple   bool
		value     node
		pos       int
	}
	// setBlock assigns the text of its body.
	setBlock struct {
		target  string
		body    []statement
		filters []filtered
	}
	filterBlock struct {
		body    []statement
		filters []filtered
		pos     int
	}
	withStatement struct {
		names  []string
		values []node
		body   []statement
	}
	macroStatement struct {
		name     string
		params   []string
		defaults []node // nil if a parameter has none
		body     []statement
		pos      int
	}
	// callBlock calls a macro that can call the body as caller().
	callBlock struct {
		call node
		body *macroStatement
		pos  int
	}
	// do evaluates an expression and discards the value.
	do struct{ value node }
	// group runs its body in place: block and autoescape.
	group struct{ body []statement }
	// loopControl is break or continue.
	loopControl struct{ to jump }
)
