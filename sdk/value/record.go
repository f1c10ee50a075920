package value

// Fields brings the free fields of a log record or an error into the value
// model, so that all of them arrive: an error becomes its text, and what has
// no JSON form the reason for that. fields is not changed.
func Fields(fields map[string]any) map[string]any {
	inModel := make(map[string]any, len(fields))
	for key, field := range fields {
		if err, ok := field.(error); ok {
			field = err.Error()
		}
		v, err := From(field)
		if err != nil {
			v = err.Error()
		}
		inModel[key] = v
	}
	return inModel
}
