package tokens

// Encoding is the tokenizer of whole texts.
var Encoding = encoding
