//go:build !cgo

package authority_test

import (
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/authority"
)

// TestNoCgo checks that a program built without cgo returns an error that says how to build it.
func TestNoCgo(t *testing.T) {
	if _, err := authority.OpenToken(authority.TokenURI{}, nil); err == nil || !strings.Contains(err.Error(), "built without cgo") || !strings.Contains(err.Error(), "CGO_ENABLED=1 go build ./nix/cmd/florctl") {
		t.Error(err)
	}
}
