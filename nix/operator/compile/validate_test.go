package compile

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestValidateWithoutIDs checks that a name from which no SPIFFE ID can be made is reported with
// all other faults.
func TestValidateWithoutIDs(t *testing.T) {
	src := flake(t, `{
		host = mkCluster (base // { hosts = base.hosts // { Web_1 = base.hosts.beta // { address = "192.0.2.9"; }; }; });
		missing = mkCluster (removeAttrs base [ "trustDomain" ]);
		wrong = mkCluster (base // { trustDomain = "De_mo"; });
		number = mkCluster (base // { trustDomain = 3; });
	}`)
	for cluster, want := range map[string]string{"host": "FL004 hosts.Web_1", "missing": "FL003 mkCluster", "wrong": "FL004 trustDomain", "number": "FL004 trustDomain"} {
		src.Cluster = cluster
		reports, err := Validate(t.Context(), src, time.Now())
		if err != nil {
			t.Errorf("%s: %v", cluster, err)
			continue
		}
		found := func(f Fault) bool { return f.ID+" "+f.Place == want }
		if faults := reports[0].Faults; !slices.ContainsFunc(faults, found) || len(faults) < 2 {
			t.Errorf("%s: got %v, want %s among others", cluster, faults, want)
		}
	}
	src.Cluster = ""
	if reports, err := Validate(t.Context(), src, time.Now()); err != nil || len(reports) != 4 {
		t.Errorf("all of them: %d reports, %v", len(reports), err)
	}
}

// TestValidateNamesTheCluster checks that several clusters are evaluated together, and that one
// that cannot be evaluated, or that mkCluster did not make, is named.
func TestValidateNamesTheCluster(t *testing.T) {
	for output, want := range map[string]string{
		`{ a = mkCluster base; b = throw "not there"; }`: "cluster b: nix eval ",
		`{ a = mkCluster base; b = { }; }`:               "cluster b: ",
	} {
		_, err := Validate(t.Context(), flake(t, output), time.Now())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s…", output, err, want)
		}
	}
}
