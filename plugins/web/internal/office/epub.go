package office

import (
	"errors"
	"fmt"
	"net/url"
	"path"
)

// readEPUB reads the chapters of a book in their order.
func (f *File) readEPUB(a *archive) error {
	var container struct {
		Roots []struct {
			Path string `xml:"full-path,attr"`
		} `xml:"rootfiles>rootfile"`
	}
	if err := a.decode("META-INF/container.xml", &container, false); err != nil {
		return err
	}
	if len(container.Roots) == 0 {
		return errors.New("META-INF/container.xml names no package")
	}
	name := container.Roots[0].Path
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
	files := map[string]string{}
	for _, item := range book.Items {
		if href, err := url.PathUnescape(item.Href); err == nil && item.Type == "application/xhtml+xml" {
			files[item.ID] = resolve(path.Dir(name), href)
		}
	}
	for _, ref := range book.Spine {
		file := files[ref.ID]
		if file == "" {
			continue // not a chapter, such as a picture
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
