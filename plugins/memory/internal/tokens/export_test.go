package tokens

// Base is the tokenizer of whole texts.
var Base = base
