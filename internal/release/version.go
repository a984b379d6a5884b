package release

import "runtime/debug"

// Release is the version of this source; modules/package.nix has the same.
const Number = "0.1.0"

// Version is what --version prints: the release, and the commit where the Go command
// knows it, as in 0.1.0+1a2b3c4d5e6f, with .dirty after what is not committed.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Number
	}
	return version(info.Settings)
}

func version(settings []debug.BuildSetting) string {
	of := map[string]string{}
	for _, s := range settings {
		of[s.Key] = s.Value
	}
	revision := of["vcs.revision"]
	if revision == "" {
		return Number
	}
	v := Number + "+" + revision[:min(len(revision), 12)]
	if of["vcs.modified"] == "true" {
		v += ".dirty"
	}
	return v
}
