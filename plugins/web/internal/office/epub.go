package office

import (
	"errors"
	"fmt"
	"net/url"
	"path"
)

// readEPUB reads the chapters of a book in their order.
func (f *File) readEPUB(a *archive) error {
	name, err := a.book()
	if err != nil {
		return err
	}
	var book struct {
		Title       string `xml:"metadata>title"`
		Creator     string `xml:"metadata>creator"`
		Language    string `xml:"metadata>language"`
		Description string `xml:"metadata>description"`
		Date        string `xml:"metadata>date"`
		Items       []struct {
			ID   string `xml:"id,attr"`
			Href string `xml:"href,attr"`
			Type string `xml:"media-type,attr"`
		} `xml:"manifest>item"`
		Spine []struct {
			ID string `xml:"idref,attr"`
		} `xml:"spine>itemref"`
	}
	if err := a.decode(name, &book, false); err != nil {
		return err
	}
	f.Metadata = Metadata{Title: book.Title, Author: book.Creator, Language: book.Language, Description: book.Description, Published: book.Date}
	encrypted, err := a.encrypted()
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, item := range book.Items {
		if href, err := url.PathUnescape(item.Href); err == nil && (item.Type == "application/xhtml+xml" || item.Type == "text/html") {
			files[item.ID] = resolve(path.Dir(name), href)
		}
	}
	for _, ref := range book.Spine {
		if f.full() || len(f.Notes) == maxParts {
			break
		}
		file := files[ref.ID]
		if file == "" {
			continue // not a chapter, such as a picture
		}
		if encrypted[file] {
			f.noteOnce("chapters were left out: they are encrypted")
			continue
		}
		text, err := a.read(file)
		if errors.Is(err, errTooLarge) {
			return err
		}
		if err != nil {
			f.Notes = append(f.Notes, "a chapter was left out: "+err.Error())
			continue
		}
		f.Parts = append(f.Parts, Part{Title: fmt.Sprintf("Chapter %d", len(f.Parts)+1), ContentType: "application/xhtml+xml", Body: text})
	}
	return nil
}

// encrypted returns the names of the encrypted files of a book.
func (a *archive) encrypted() (map[string]bool, error) {
	var encryption struct {
		Files []struct {
			URI string `xml:",attr"`
		} `xml:"EncryptedData>CipherData>CipherReference"`
	}
	if err := a.decode("META-INF/encryption.xml", &encryption, true); err != nil {
		return nil, err
	}
	encrypted := map[string]bool{}
	for _, file := range encryption.Files {
		if uri, err := url.PathUnescape(file.URI); err == nil {
			encrypted[resolve("", uri)] = true
		}
	}
	return encrypted, nil
}

// book returns the name of the file that lists the chapters.
func (a *archive) book() (string, error) {
	var container struct {
		Roots []struct {
			Path string `xml:"full-path,attr"`
		} `xml:"rootfiles>rootfile"`
	}
	if err := a.decode("META-INF/container.xml", &container, false); err != nil {
		return "", err
	}
	if len(container.Roots) == 0 {
		return "", errors.New("META-INF/container.xml names no package")
	}
	return container.Roots[0].Path, nil
}
