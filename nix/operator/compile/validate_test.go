package compile

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What no SPIFFE ID can be made of is a fault like any other, beside all others.
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

// Several clusters are evaluated together. One that cannot be evaluated is named, as is one
// that mkCluster did not make.
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
