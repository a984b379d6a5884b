package fetch

import (
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// TestBundles checks that a provider cannot make a host trust a root that the host no longer
// trusts.
func TestBundles(t *testing.T) {
	h, a := newHost(t)
	a.Need = kit.FederationNeed("blue", "blue.example", "forge")
	ca := kit.NewCAOf("blue.example")
	answer := func(text []byte) *hostapi.Error {
		return h.complete(a, pending{}, &hostapi.Answer{Values: map[string]string{"bundle": string(text)}})
	}
	if e := answer(ca.Bundle(2, time.Minute)); e != nil {
		t.Fatal(e)
	}
	kit.Swap(hostdir.Current(h.Layout.Need(a.Need.ID)), map[string][]byte{document.FileTrustBundle: ca.Bundle(2, time.Minute)})
	for _, c := range []struct {
		text []byte
		part string
	}{
		{ca.Bundle(2, time.Hour), ""},
		{kit.NewCAOf("blue.example").Bundle(3, time.Minute), ""},
		{ca.Bundle(1, time.Minute), "sequence number 1, want one after 2"},
		{ca.Bundle(2, time.Minute, kit.NewCAOf("blue.example")), "with other keys"},
		{kit.NewCA().Bundle(3, time.Minute), "of trust domain demo.flor"},
		{nil, "unable to parse"},
	} {
		e := answer(c.text)
		if (e == nil) != (c.part == "") || e != nil && (e.Kind != hostapi.Transient || e.Code != CodeBundle.Name || !strings.Contains(e.Message, c.part)) {
			t.Errorf("%v, want %q", e, c.part)
		}
	}
}
