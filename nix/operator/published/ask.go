package published

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/providers/file"
)

// Ask sends a value as JSON to the process of a kind of need, such as "file", and decodes the
// answer. It sends a POST request or, if the value is nil, a GET request. The request goes to
// config providers on hosts that also provide the kind, one after the other until one answers. Ask
// returns the name of that host. If the providers are reached over SSH, Ask returns an error.
func (c Cluster) Ask(ctx context.Context, kind, path string, about, answer any) (host string, err error) {
	hosts := c.Topology.Providers[kind].Hosts
	instead := "" // alternative for operators
	if kind == file.Name {
		instead = ", or put files into its directory"
	}
	var failed []error
	for _, at := range c.Providers {
		if !slices.Contains(hosts, at.Host) {
			continue
		}
		if at.OverSSH() {
			return "", fmt.Errorf("--via ssh does not lead to the process of kind %s: call it through the forwarder%s", kind, instead)
		}
		if about == nil {
			err = at.Get(ctx, path, answer)
		} else {
			err = at.Post(ctx, path, about, answer)
		}
		if err == nil {
			return at.Host, c.Providers.Failed(failed)
		}
		failed = append(failed, err)
	}
	switch {
	case len(failed) > 0:
		return "", errors.Join(failed...)
	case len(hosts) == 0:
		return "", fmt.Errorf("cluster %s: no host provides %q: write providers.%[2]s.hosts", c.Topology.Name, kind)
	}
	return "", fmt.Errorf("cluster %s: %s provides %q but no documents, and operators reach providers only on hosts that provide documents: name it in providers.config.hosts%s",
		c.Topology.Name, strings.Join(hosts, ", "), kind, instead)
}
