package explain

import (
	"strings"
	"testing"

	"github.com/florete/florete/nix/operator/compile"
)

// TestSignInElsewhere checks that the text names the cluster at whose issuer people sign in.
func TestSignInElsewhere(t *testing.T) {
	for cluster, want := range map[string]string{"blue": "people sign in to it at the issuer of cluster blue\n", "": ""} {
		if got := signIn(compile.Service{SSO: compile.SSO{Mode: "oidc", Cluster: cluster}}).String(); got != want {
			t.Errorf("cluster %q: %q, want %q", cluster, got, want)
		}
	}
	if got := signIn(compile.Service{SSO: compile.SSO{Mode: "oidc", AllowedGroups: []string{"ops"}}}).String(); strings.Contains(got, "cluster") {
		t.Errorf("at the issuer of the cluster itself: %q", got)
	}
}
