// Package words finds the words of texts, folds and stems them, for the searches of the
// plugins. Start with [New]: [Language.Normalize] a text, [Cutter.Cut] it, and take
// [Language.Form] and [Language.Keys] of each word. An index records [Analysis] and
// [StemsVersion], and is rebuilt when they change.
package words
