package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	docpages "github.com/florete/florete/tests/docs/pages"
)

// TestLinks checks that each link on a page to a file of this repository leads to an existing file
// and, if the link has a fragment, to an existing heading.
func TestLinks(t *testing.T) {
	all, root := docpages.All(t), docpages.Root(t)
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.Path] = p.Anchors()
	}
	links := 0
	for _, p := range all {
		for _, l := range p.Links() {
			links++
			if _, err := os.Stat(filepath.Join(root, l.File)); err != nil {
				t.Errorf("%s:%d: links to %s, which does not exist", p.Path, l.Line, l.Text)
				continue
			}
			if of, isPage := anchors[l.File]; l.Fragment != "" && isPage && !of[l.Fragment] {
				t.Errorf("%s:%d: links to %s: no heading of %s has the anchor %q", p.Path, l.Line, l.Text, l.File, l.Fragment)
			}
		}
	}
	if links < 200 {
		t.Errorf("%d links found, want more: is their form still known?", links)
	}
}

// TestSummary checks that docs/SUMMARY.md lists each page below docs once, under the title of the
// page, and nothing else.
func TestSummary(t *testing.T) {
	const summary = "docs/SUMMARY.md"
	seen := map[string]int{}
	titles := map[string]string{}
	for _, p := range docpages.All(t) {
		switch {
		case p.Path == summary:
			for _, l := range p.Links() {
				seen[l.File]++
			}
		case p.InDocs():
			if _, there := seen[p.Path]; !there {
				seen[p.Path] = 0
			}
			title, isTitle := strings.CutPrefix(p.Lines[0], "# ")
			if !isTitle {
				t.Errorf("%s: does not begin with a title, want # Title", p.Path)
			}
			titles[p.Path] = title
		}
	}
	for page, n := range seen {
		if _, there := titles[page]; n > 0 && !there {
			t.Errorf("%s: has %s, which does not exist", summary, page)
		} else if n != 1 {
			t.Errorf("%s: has %s %d times, want once", summary, page, n)
		}
	}
	text, err := os.ReadFile(filepath.Join(docpages.Root(t), summary))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for page, title := range titles {
		called := "[" + title + "](" + strings.TrimPrefix(page, "docs/") + ")"
		if page != "docs/README.md" && !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, called) }) {
			t.Errorf("%s: does not have %s, as its title is", summary, called)
		}
	}
}
