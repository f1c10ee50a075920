// Package office reads files of office programs, e-mails and books: DOCX, PPTX, XLSX,
// EPUB and messages (.eml). It returns their text as HTML, in parts such as slides and
// sheets, and their images. Start with [Read].
//
// Sources: ECMA-376 (Office Open XML), EPUB 3.3, RFC 5322 and RFC 2045.
package office
