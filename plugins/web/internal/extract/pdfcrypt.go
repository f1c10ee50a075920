package extract

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"regexp"
	"strings"
)

var (
	pdfEncrypt   = regexp.MustCompile(`/Encrypt\s*(?:(\d{1,10})\s+(\d{1,5})\s+R|<<)`)
	pdfRevision  = regexp.MustCompile(`/R\s+([56])\b`)
	pdfAES256    = regexp.MustCompile(`/CFM\s*/AESV3\b`)
	pdfIdentity  = regexp.MustCompile(`/(?:StmF|StrF)\s*/Identity\b`)
	pdfXrefTable = regexp.MustCompile(`/Type\s*/XRef\b`)
)

// decryptPDF decrypts a file that is encrypted with AES-256 and an empty user password (ISO
// 32000-2, section 7.6). All parts of the file keep their offsets. Other files are returned
// unchanged; the library decrypts older forms. The result is nil if there is a password.
func decryptPDF(body []byte) []byte {
	at := pdfEncrypt.FindSubmatchIndex(body)
	if at == nil {
		return body
	}
	settings := body[at[1]:]
	if at[2] >= 0 {
		object := regexp.MustCompile(`(?:^|[\r\n])` + string(body[at[2]:at[3]]) + `\s+` + string(body[at[4]:at[5]]) + `\s+obj\b`)
		place := object.FindIndex(body)
		if place == nil {
			return body
		}
		settings = body[place[1]:]
	}
	if end := bytes.Index(settings, []byte("endobj")); end >= 0 {
		settings = settings[:end]
	}
	revision := pdfRevision.FindSubmatch(settings)
	if revision == nil || !pdfAES256.Match(settings) || pdfIdentity.Match(settings) {
		return body
	}
	key := pdfFileKey(pdfStringAfter(settings, "/U"), pdfStringAfter(settings, "/UE"), string(revision[1]) == "6")
	if key == nil {
		return nil
	}
	plain := bytes.Clone(body)
	for _, place := range pdfEncrypt.FindAllSubmatchIndex(plain, -1) {
		if place[2] >= 0 {
			fill(plain[place[0]:place[1]], nil)
		} else {
			copy(plain[place[0]:], "/Opened ") // the dictionary stays
		}
	}
	pdfDecrypter{key}.decrypt(plain)
	return plain
}

// pdfStringAfter returns the string that a dictionary has for a name.
func pdfStringAfter(dictionary []byte, name string) []byte {
	for rest := dictionary; ; {
		_, after, found := bytes.Cut(rest, []byte(name))
		if !found {
			return nil
		}
		rest = after
		if value := bytes.TrimLeft(after, " \t\r\n\f\x00"); len(value) > 1 && (value[0] == '(' || value[0] == '<' && value[1] != '<') {
			text, _ := pdfString(value)
			return text
		}
	}
}

// pdfFileKey returns the key of the file for the empty user password, nil if the password
// is not empty.
func pdfFileKey(u, ue []byte, hardened bool) []byte {
	if len(u) < 48 || len(ue) < 32 {
		return nil
	}
	hash := func(salt []byte) []byte {
		sum := sha256.Sum256(salt)
		return sum[:]
	}
	if hardened {
		hash = pdfHash
	}
	if !bytes.Equal(hash(u[32:40]), u[:32]) {
		return nil
	}
	block, err := aes.NewCipher(hash(u[40:48]))
	if err != nil {
		return nil
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(key, ue[:32])
	return key
}

// pdfHash is algorithm 2.B of ISO 32000-2 for the empty password.
func pdfHash(salt []byte) []byte {
	first := sha256.Sum256(salt)
	k := first[:]
	for round := 0; ; round++ {
		e := bytes.Repeat(k, 64)
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(e, e)
		sum := 0
		for _, b := range e[:16] {
			sum += int(b)
		}
		switch sum % 3 {
		case 0:
			next := sha256.Sum256(e)
			k = next[:]
		case 1:
			next := sha512.Sum384(e)
			k = next[:]
		default:
			next := sha512.Sum512(e)
			k = next[:]
		}
		if round >= 63 && int(e[len(e)-1]) <= round-31 {
			return k[:32]
		}
	}
}

type pdfDecrypter struct{ key []byte }

// decrypt replaces all strings and streams by their plain texts, which are shorter. Object
// streams have no encrypted strings in them, and cross-reference streams are not
// encrypted.
func (d pdfDecrypter) decrypt(file []byte) {
	object := 0 // where the current object begins
	for at := 0; at < len(file); {
		rest := file[at:]
		switch {
		case rest[0] == '%':
			size := bytes.IndexAny(rest, "\r\n")
			if size < 0 {
				return
			}
			at += size
		case rest[0] == '(' || rest[0] == '<' && !bytes.HasPrefix(rest, []byte("<<")):
			text, size := pdfString(rest)
			if plain := d.open(text); plain != nil {
				fill(rest[:size], pdfLiteral(plain, size))
			}
			at += size
		case bytes.HasPrefix(rest, []byte("<<")), bytes.HasPrefix(rest, []byte("endobj")):
			at += 2
		case bytes.HasPrefix(rest, []byte("obj")):
			at += len("obj")
			object = at
		case bytes.HasPrefix(rest, []byte("stream\n")), bytes.HasPrefix(rest, []byte("stream\r\n")):
			begin := at + bytes.IndexByte(rest, '\n') + 1
			size := bytes.Index(file[begin:], []byte("endstream"))
			if size < 0 {
				return
			}
			data := file[begin : begin+size-size%aes.BlockSize] // without the end of the line
			if plain := d.open(data); plain != nil && !pdfXrefTable.Match(file[object:at]) {
				fill(data, plain)
			}
			at = begin + size + len("endstream")
			object = at
		default:
			at++
		}
	}
}

// open decrypts a text, which begins with its initialization vector. It returns nil if
// the text is not encrypted.
func (d pdfDecrypter) open(text []byte) []byte {
	block, err := aes.NewCipher(d.key)
	if err != nil || len(text) < 2*aes.BlockSize || len(text)%aes.BlockSize != 0 {
		return nil
	}
	plain := make([]byte, len(text)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, text[:aes.BlockSize]).CryptBlocks(plain, text[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize {
		return nil
	}
	return plain[:len(plain)-padding]
}

// fill overwrites a part of a file with a text, followed by spaces.
func fill(part, text []byte) {
	for i := copy(part, text); i < len(part); i++ {
		part[i] = ' '
	}
}

// pdfLiteral returns a text as a PDF string, or the empty string if it needs more than limit
// bytes.
func pdfLiteral(text []byte, limit int) []byte {
	literal := "(" + strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`, "\r", `\r`).Replace(string(text)) + ")"
	if len(literal) > limit {
		return []byte("()")
	}
	return []byte(literal)
}

// pdfString reads the string at the beginning of part. It returns its bytes and its size in
// the file.
func pdfString(part []byte) (text []byte, size int) {
	if part[0] == '<' {
		end := bytes.IndexByte(part, '>')
		if end < 0 {
			return nil, len(part)
		}
		digits := bytes.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n\f\x00", r) {
				return -1
			}
			return r
		}, part[1:end])
		if len(digits)%2 == 1 {
			digits = append(digits, '0')
		}
		text, err := hex.AppendDecode(nil, digits)
		if err != nil {
			return nil, end + 1
		}
		return text, end + 1
	}
	depth := 0
	for at := 0; at < len(part); at++ {
		switch c := part[at]; c {
		case '\\':
			var n int
			text, n = appendEscaped(text, part[at+1:])
			at += n
		case '(':
			if depth++; depth > 1 {
				text = append(text, c)
			}
		case ')':
			if depth--; depth == 0 {
				return text, at + 1
			}
			text = append(text, c)
		default:
			text = append(text, c)
		}
	}
	return nil, len(part) // it does not end
}

// appendEscaped adds what an escape stands for, and returns the size after the backslash.
func appendEscaped(text, rest []byte) ([]byte, int) {
	if len(rest) == 0 {
		return text, 0
	}
	if at := strings.IndexByte("nrtbf", rest[0]); at >= 0 {
		return append(text, "\n\r\t\b\f"[at]), 1
	}
	n, value := 0, 0
	for n < 3 && n < len(rest) && rest[n] >= '0' && rest[n] <= '7' {
		value = value*8 + int(rest[n]-'0')
		n++
	}
	switch {
	case n > 0:
		return append(text, byte(value)), n
	case bytes.HasPrefix(rest, []byte("\r\n")):
		return text, 2
	case rest[0] == '\n' || rest[0] == '\r':
		return text, 1
	}
	return append(text, rest[0]), 1
}
