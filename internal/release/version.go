package release

import "runtime/debug"

// Number is the version number of this release. It must equal the version in modules/package.nix.
const Number = "0.1.0"

// Version returns the version of a program for --version, such as 0.1.0+1a2b3c4d5e6f. It consists
// of Number and, if the Go command has recorded it, the commit. The suffix .dirty means that the
// work tree had uncommitted changes.
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
