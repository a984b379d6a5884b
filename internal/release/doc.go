// Package release has the version of this source.
package release
