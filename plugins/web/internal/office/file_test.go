package office

import (
	"archive/zip"
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestUnpackedSizeIsBounded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range []string{"word/document.xml", "word/styles.xml"} {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte("<document>" + strings.Repeat(" ", 80<<10) + "</document>"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, ok, err := Read(t.Context(), "a.docx", out.Bytes(), Limits{Bytes: 100 << 10})
	if !ok || !errors.Is(err, errTooLarge) {
		t.Errorf("both files: %v %v", ok, err)
	}
	if _, ok, err = Read(t.Context(), "a.docx", out.Bytes(), Limits{Bytes: 200 << 10}); !ok || err != nil {
		t.Errorf("within the limit: %v %v", ok, err)
	}
}
