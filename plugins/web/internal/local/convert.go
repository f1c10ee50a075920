package local

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	tea "github.com/the-edge-agent/tea/sdk"
)

// converted is a page as a result, and as a document whose links a crawl follows.
type converted struct {
	page *page.Page
	doc  *extract.Document
	err  error
}

// convert parses a response and returns it in the requested formats.
func (r *Reader) convert(ctx context.Context, s extract.Source, o page.ReadOptions, finish func(*converted)) (*page.Page, *extract.Document, error) {
	c := r.work(ctx, s, func(c *converted) {
		c.page = toPage(c.doc, o)
		finish(c)
	})
	return c.page, c.doc, c.err
}

// Parse parses a document that was not fetched, and returns all of its content as
// Markdown. Its URL is used only for links and errors.
func (r *Reader) Parse(ctx context.Context, s extract.Source) (*extract.Document, string, error) {
	var markdown string
	c := r.work(ctx, s, func(c *converted) { markdown = c.doc.Content(false).Markdown() })
	if c.err != nil {
		return nil, "", c.err
	}
	return c.doc, markdown, nil
}

// work parses a document and calls finish with it. A panic in a library becomes an
// internal_error.
func (r *Reader) work(ctx context.Context, s extract.Source, finish func(*converted)) converted {
	var c converted
	err := r.Run(ctx, func() {
		defer func() {
			if fault := recover(); fault != nil {
				c = converted{err: failure(tea.InternalError, s.URL, "the page cannot be converted: %v", fault)}
			}
		}()
		if c.doc, c.err = extract.Parse(ctx, s); c.err == nil {
			finish(&c)
		}
	})
	if err != nil {
		return converted{err: err}
	}
	return c
}

// Run calls a function that must not panic and that cannot be interrupted, such as one of
// a library. If the context ends, Run returns its error and the function continues in the
// background, in a limited number of workers; its results must not be used then.
func (r *Reader) Run(ctx context.Context, do func()) error {
	select {
	case r.workers <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := make(chan struct{})
	go func() {
		defer func() {
			<-r.workers
			close(done)
		}()
		do()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// toPage converts a document to the requested formats.
func toPage(doc *extract.Document, o page.ReadOptions) *page.Page {
	p := &page.Page{Success: true, URL: doc.URL.String(), Metadata: doc.Metadata}
	if o.Has(page.Markdown) || o.Has(page.HTML) || o.Has(page.Text) {
		content := doc.Content(o.MainOnly())
		if o.Has(page.HTML) {
			p.HTML = content.HTML()
		}
		if o.Has(page.Text) {
			p.Text = content.Text()
		}
		if o.Has(page.Markdown) {
			p.Markdown = content.Markdown()
		}
	}
	if o.Has(page.Links) {
		p.Links = doc.Links()
	}
	p.Notes = doc.Notes
	return p
}
