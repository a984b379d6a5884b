package compile

import (
	"context"
	"strings"
)

// NixOSHosts returns the names in the flake's output nixosConfigurations. Without that output, it
// returns none.
func NixOSHosts(ctx context.Context, src Source) (names []string, err error) {
	err = run(ctx, []string{"eval", src.ref() + "#nixosConfigurations"}, append([]string{"--apply", "builtins.attrNames"}, src.Args...), &names)
	if err != nil && strings.Contains(err.Error(), "the flake has no such output") {
		return nil, nil
	}
	return names, err
}

// Ref returns the flake reference in the form that Nix accepts.
func (s Source) Ref() string { return s.ref() }
