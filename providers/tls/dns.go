package tls

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-acme/lego/v4/challenge"
	"github.com/go-acme/lego/v4/providers/dns/exec"
	"github.com/go-acme/lego/v4/providers/dns/httpreq"
)

// dnsProviders contains the DNS providers of lego that are part of this program. All other
// providers can be used through an external program, such as one that runs nsupdate(1), or through
// an HTTP service.
var dnsProviders = map[string]func() (challenge.Provider, error){
	"exec":    func() (challenge.Provider, error) { return exec.NewDNSProvider() },
	"httpreq": func() (challenge.Provider, error) { return httpreq.NewDNSProvider() },
}

func dnsNames() []string { return slices.Sorted(maps.Keys(dnsProviders)) }

// dnsProvider returns a DNS provider with the environment variables in the settings. It reads these
// variables again at each call, because they contain secrets that change.
func (k *Certificates) dnsProvider(name string) (challenge.Provider, error) {
	if k.Environment == "" {
		return nil, fmt.Errorf("dns %q: the settings of kind %q name no environment: write \"environment\": \"tls.env\"", name, Name)
	}
	f, err := os.Open(k.Environment)
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !strings.HasPrefix(key, strings.ToUpper(name)+"_") {
			return nil, fmt.Errorf("environment %s:%d: want %s_NAME=VALUE", k.Environment, number, strings.ToUpper(name))
		}
		if err := os.Setenv(key, value); err != nil {
			return nil, fmt.Errorf("environment %s:%d: not a variable", k.Environment, number)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.New("environment: a line is too long")
	}
	return dnsProviders[name]()
}
