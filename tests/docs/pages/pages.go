// Package pages reads the documentation for tests: its pages with their blocks of code, headings,
// links and commands.
package pages

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Page is a file of Markdown of this repository.
type Page struct {
	Path  string // from the top of the repository, with slashes
	Lines []string
	code  []bool // of each line, whether it is in a block of code
	block []Block
}

// Block is a block of code on a page.
type Block struct {
	Page     string
	Line     int    // of its first line of code, from 1
	Language string // such as nix, or empty
	Text     string
}

// Root returns the root directory of the repository: the nearest directory with a go.mod, from the
// working directory upwards.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("no go.mod above the test's directory: %v", err)
	return ""
}

// All returns all Markdown pages of the repository that people read: the pages in docs and .github,
// and every README.
func All(t testing.TB) (all []Page) {
	t.Helper()
	root := Root(t)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "book", "testdata", "node_modules":
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil || !strings.HasSuffix(file, ".md") {
			return err
		}
		text, err := os.ReadFile(file)
		all = append(all, parse(filepath.ToSlash(rel), string(text)))
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d pages: %v", len(all), err)
	}
	return all
}

// InDocs reports whether a page is one of the documentation's site.
func (p Page) InDocs() bool { return strings.HasPrefix(p.Path, "docs/") }

var fence = regexp.MustCompile("^ *(```+|~~~+) *([\\w+-]*)")

func parse(path, text string) Page {
	p := Page{Path: path, Lines: strings.Split(text, "\n")}
	open := ""
	for i, line := range p.Lines {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == "" && m != nil:
			open = m[1]
			p.block = append(p.block, Block{Page: path, Line: i + 2, Language: m[2]})
			p.code = append(p.code, true)
			continue
		case open != "" && m != nil && strings.HasPrefix(m[1], open) && m[2] == "":
			open = ""
			p.code = append(p.code, true)
			continue
		case open != "":
			b := &p.block[len(p.block)-1]
			b.Text += strings.TrimPrefix(line, "   ") + "\n"
		}
		p.code = append(p.code, open != "")
	}
	return p
}

// Blocks returns the blocks of code in one of the languages.
func (p Page) Blocks(languages ...string) (all []Block) {
	for _, b := range p.block {
		for _, l := range languages {
			if b.Language == l {
				all = append(all, b)
			}
		}
	}
	return all
}

// Prose calls f with each line of the page that is outside of code blocks, and with the number of
// that line. The first line of a page has the number 1.
func (p Page) Prose(f func(line int, text string)) {
	for i, text := range p.Lines {
		if !p.code[i] {
			f(i+1, text)
		}
	}
}

var (
	heading   = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	linked    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	dropped   = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	htmlID    = regexp.MustCompile(`<(?:a|div|span|h\d)[^>]*\b(?:id|name)="([^"]+)"`)
	span      = regexp.MustCompile("`[^`]*`")
	reference = regexp.MustCompile(`!?\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|<img[^>]*\bsrc="([^"]+)"|^\[[^\]]+\]:\s+(\S+)`)
)

// Anchors returns the fragments that a link to this page can have after the "#". GitHub and mdBook
// derive them from headings, and IDs of HTML elements are fragments, too.
func (p Page) Anchors() map[string]bool {
	all := map[string]bool{}
	p.Prose(func(_ int, text string) {
		for _, m := range htmlID.FindAllStringSubmatch(text, -1) {
			all[m[1]] = true
		}
		m := heading.FindStringSubmatch(text)
		if m == nil {
			return
		}
		id := linked.ReplaceAllString(m[1], "$1")
		id = strings.NewReplacer("`", "", "*", "", "&lt;", "", "&gt;", "").Replace(strings.ToLower(id))
		id = strings.ReplaceAll(dropped.ReplaceAllString(id, ""), " ", "-")
		if all[id] {
			for n := '1'; ; n++ {
				if again := id + "-" + string(n); !all[again] {
					id = again
					break
				}
			}
		}
		all[id] = true
	})
	return all
}

// Link is a link on a page that leads to a file of this repository.
type Link struct {
	Line     int
	File     string // from the top of the repository; empty where it leads out of it
	Fragment string
	Text     string // as it is on the page
}

// Links returns the links to files of this repository.
func (p Page) Links() (all []Link) {
	p.Prose(func(line int, text string) {
		for _, m := range reference.FindAllStringSubmatch(span.ReplaceAllStringFunc(text, blank), -1) {
			to := m[1] + m[2] + m[3]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			file, fragment, _ := strings.Cut(to, "#")
			l := Link{Line: line, File: p.Path, Fragment: fragment, Text: to}
			if file != "" {
				l.File = path.Join(path.Dir(p.Path), file)
			}
			all = append(all, l)
		}
	})
	return all
}

// blank keeps the length of a span of code, and nothing that reads like a link.
func blank(s string) string { return strings.Repeat("x", len(s)) }
