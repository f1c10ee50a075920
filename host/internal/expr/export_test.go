package expr

// Names are the filters, tests and functions, for the check of the guide.
func Names() (filterNames, testNames, functionNames []string) {
	return keys(filters()), keys(tests()), keys(functions())
}
