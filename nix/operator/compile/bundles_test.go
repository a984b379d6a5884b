package compile

import (
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
)

func TestCheckBundles(t *testing.T) {
	good := string(kit.NewCAOf("blue.example").Bundle(1, time.Minute))
	now := time.Now()
	for name, c := range map[string]struct {
		bundle string
		at     time.Time
		value  string
	}{
		"good":                 {good, now, ""},
		"reported already":     {"", now, ""},
		"expired":              {good, now.AddDate(20, 0, 0), now.AddDate(10, 0, 0).Format("2006")},
		"no JSON":              {`{"keys" "x509-svid"`, now, "unable to parse JWKS"},
		"no certificate":       {`{"keys":[{"use":"x509-svid"}]}`, now, "unable to parse JWKS"},
		"another trust domain": {string(kit.NewCA().Bundle(1, 0)), now, "of trust domain demo.flor"},
	} {
		faults := CheckBundles(map[string]Federated{"blue": {TrustDomain: "blue.example", Bundle: c.bundle}}, c.at)
		switch {
		case c.value == "" && faults != nil:
			t.Errorf("%s: %v", name, faults)
		case c.value != "" && (len(faults) != 1 || faults[0].ID != "FL085" || faults[0].Place != "federated.blue.bundle" || !strings.Contains(faults[0].Value, c.value)):
			t.Errorf("%s: %v, want %q", name, faults, c.value)
		}
	}
}
