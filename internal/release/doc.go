// Package release contains the version of this release.
package release
