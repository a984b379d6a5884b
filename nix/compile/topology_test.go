package compile

import (
	"errors"
	"slices"
	"testing"
)

func TestReadTopology(t *testing.T) {
	src := flake(t, `{ one = mkCluster base; }`)
	top, err := ReadTopology(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	wiki, ann := top.Services["wiki"], top.Users["ann"]
	if top.Name != "golden" || top.Hosts["beta"].ID.Short() != "node/beta" || !wiki.Published || wiki.IDs[0].Short() != "service/wiki" ||
		!slices.Equal(wiki.Hosts, []string{"beta"}) || !slices.Equal(ann.Hosts, []string{"beta"}) || !slices.Equal(ann.Roles, []string{"reader"}) ||
		!slices.Equal(top.Roles["reader"].Services, []string{"wiki"}) || !slices.Equal(top.Hosts["alpha"].Kinds, []string{"cert"}) {
		t.Errorf("got %+v", top)
	}
}

// Nobody computes with the topology of a cluster that has faults.
func TestFaultsWithholdEverything(t *testing.T) {
	src := flake(t, `{ one = mkCluster (base // { users.ann.roles = [ "reder" ]; }); }`)
	var faults *FaultsError
	if top, err := ReadTopology(t.Context(), src); !errors.As(err, &faults) || top.Hosts != nil {
		t.Errorf("got %v, %v", top, err)
	}
	if snap, err := Read(t.Context(), src); !errors.As(err, &faults) || snap.Documents != nil {
		t.Errorf("got %v, %v", snap, err)
	}
}
