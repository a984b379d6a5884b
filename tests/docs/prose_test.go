package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	docpages "github.com/florete/florete/tests/docs/pages"
)

// banned are forms of prose that a reader has to read twice, or that say nothing, with what to write.
var banned = []struct {
	form *regexp.Regexp
	want string
}{
	{regexp.MustCompile(`\([+-]\)`), "a sentence that says what it gains or costs"},
	{regexp.MustCompile(`(?i)\b(is|are) (what|who|whom|whether)\b`), "the noun: reports whether, is the host that"},
	{regexp.MustCompile(`(?i)\bsimply\b`), "nothing in its place"},
	{regexp.MustCompile(`(?i)\b(utilize|leverage|seamless(ly)?|blazing(ly)?)\b`), "a plain word"},
	{regexp.MustCompile(`(^|[.;] )(What|Who|Whoever) (is|are|has|have|was|comes|needs) [^?.]*\b(is|are|stays?|goes|gets)\b`), "the noun as the subject"},
}

const columns = 100

// generated are pages made from text that is no Markdown, whose lines are as long as that has them.
var generated = regexp.MustCompile(`^docs/reference/(faults|control-api|flor|florctl|flor-provider|nixos-options)\.md$`)

var (
	address = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|https?://\S+`)
	spans   = regexp.MustCompile("`[^`]*`")
)

// TestProse checks that pages contain no banned phrase and no line of more than 100 columns. Tables
// and addresses of links do not count.
func TestProse(t *testing.T) {
	for _, p := range docpages.All(t) {
		if !p.InDocs() && filepath.Base(p.Path) != "README.md" {
			continue
		}
		p.Prose(func(n int, line string) {
			text := spans.ReplaceAllString(line, "code")
			for _, b := range banned {
				if found := b.form.FindString(text); found != "" {
					t.Errorf("%s:%d: %q, want %s", p.Path, n, strings.TrimSpace(found), b.want)
				}
			}
			short := utf8.RuneCountInString(address.ReplaceAllString(line, ""))
			if p.InDocs() && !generated.MatchString(p.Path) && short > columns && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(strings.TrimSpace(line), "|") && !strings.HasPrefix(line, "#") {
				t.Errorf("%s:%d: %d columns, want at most %d", p.Path, n, short, columns)
			}
		})
	}
}

var isWhat = regexp.MustCompile(`^\w+ (is|are|was|has) (what|who|whom|whose|whether|how|where|why|that of|those)\b`)

// TestDocComments finds doc comments of a form that writers of Go do not use.
func TestDocComments(t *testing.T) {
	root := docpages.Root(t)
	var found []string
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || file == filepath.Join(root, "tests", "tools")): // the last has modules of their own
			return filepath.SkipDir
		case !strings.HasSuffix(file, ".go"):
			return nil
		}
		f, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var doc *ast.CommentGroup
			switch n := n.(type) {
			case *ast.FuncDecl:
				doc = n.Doc
			case *ast.GenDecl:
				doc = n.Doc
			case *ast.TypeSpec:
				doc = n.Doc
			case *ast.ValueSpec:
				doc = n.Doc
			case *ast.Field:
				doc = n.Doc
			}
			if doc != nil && isWhat.MatchString(doc.Text()) {
				first, _, _ := strings.Cut(doc.Text(), "\n")
				found = append(found, files.Position(doc.Pos()).String()+": "+first)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		t.Errorf("doc comments of the form \"X is what …\", want Go's, such as \"X reports whether …\":\n%s", strings.Join(found, "\n"))
	}
}
