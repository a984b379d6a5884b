package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reserved lists functions and variables of other packages that only some of our packages may use,
// with the reason.
var reserved = []struct {
	path   string // of the package
	names  []string
	in     []string // folders
	reason string
}{
	{"net/http", []string{"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "ProxyFromEnvironment"},
		[]string{"providers/outside", "tests"},
		"HTTP_PROXY is for servers of third parties: a request inside the cluster would reach the proxy in clear"},
	{"os/user", []string{"Lookup", "LookupId", "LookupGroup", "LookupGroupId", "Current"},
		[]string{"internal/nss", "tests"},
		"static programs see /etc/passwd alone: internal/nss asks LDAP and SSSD, too"},
}

// defaulted are the folders that use an http.Client without a transport, which means
// http.DefaultTransport.
var defaulted = []string{
	"providers/oidc", // the registration endpoint of an issuer elsewhere
}

// TestReserved checks that reserved functions are used only in the folders listed.
func TestReserved(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			return cmpErr(err, filepath.SkipDir)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		name, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		for _, fault := range misused(t, path, filepath.ToSlash(filepath.Dir(name))) {
			t.Errorf("%s: %s", name, fault)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// misused returns the uses in a file that are reserved for other folders.
func misused(t *testing.T, path, folder string) (faults []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]string{} // path by name
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		name := p[strings.LastIndex(p, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = p
	}
	of := func(e ast.Expr) (path, name string) {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return "", ""
		}
		if x, ok := s.X.(*ast.Ident); ok {
			return imported[x.Name], s.Sel.Name
		}
		return "", ""
	}
	within := func(folders []string) bool {
		return slices.ContainsFunc(folders, func(in string) bool { return folder == in || strings.HasPrefix(folder, in+"/") })
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			path, name := of(n)
			for _, r := range reserved {
				if r.path == path && slices.Contains(r.names, name) && !within(r.in) {
					faults = append(faults, path+"."+name+": "+r.reason)
				}
			}
		case *ast.CompositeLit:
			path, name := of(n.Type)
			has := slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					return false
				}
				key, ok := kv.Key.(*ast.Ident)
				return ok && key.Name == "Transport"
			})
			if path == "net/http" && name == "Client" && !has && !within(append(defaulted, "tests")) {
				faults = append(faults, "net/http.Client without a Transport: "+reserved[0].reason)
			}
		}
		return true
	})
	return faults
}
