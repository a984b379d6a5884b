#!/bin/sh
# Installs this bundle on a Linux with systemd. See --help.
set -eu
umask 022

usage() {
	cat <<'END'
Usage: install.sh [--dry-run] [--root DIR] [--any-host]   install or upgrade
       install.sh --rollback [--dry-run] [--root DIR]     back to the version before
       install.sh --remove [--purge] [--dry-run] [--root DIR]

Every step looks first and acts where something is to be done, so that doing it
again does nothing, and a run that was cut short is finished by the next.

  --dry-run   print what would be done
  --root DIR  install below DIR, such as a chroot; starts nothing
  --any-host  also where the SSH host key is not the one that was declared
  --purge     also remove what was fetched, /var/lib/florete. What a provider made
              itself, its keys among it, and /etc/florete/provider.hujson always stay

Afterwards it is there as florete-install.
END
}

die() {
	echo "install.sh: $*" >&2
	exit 1
}

# act does something, and says so.
act() {
	echo "+ $*"
	[ -n "$dry" ] || "$@"
}

# mark remembers what is under way until it is finished.
mark() { echo "${old:--} $version" >"$base/unfinished"; }

# changing comes before the first change.
changing() {
	[ -n "$changed" ] || [ ! -d "$base" ] || act mark
	changed=1
}

# link makes $2 lead to $1, whatever it was.
link() {
	[ "$(readlink "$2" || :)" != "$1" ] || return 0
	[ ! -d "$2" ] || [ -L "$2" ] || die "$2 is a directory, not ours: move it away"
	changing
	act point "$1" "$2"
}

# put makes $2 a copy of $1.
put() {
	! cmp -s "$1" "$2" || return 0
	changing
	act copy "$1" "$2"
}

# point and copy replace $2 at once: nobody sees half of it.
point() {
	mkdir -p "${2%/*}"
	ln -sfn "$1" "$2.new"
	mv -T "$2.new" "$2"
}
copy() {
	mkdir -p "${2%/*}"
	cp "$1" "$2.new"
	mv -T "$2.new" "$2"
}

# gone removes files.
gone() {
	for path; do
		[ -e "$path" ] || [ -L "$path" ] || continue
		changing
		act rm -rf "$path"
	done
}

# live tells whether there is a systemd to talk to.
live() { [ -z "$root" ] && [ -d /run/systemd/system ]; }

# enabled prints the units in $1 that something wants.
enabled() { grep -lx '\[Install\]' "$1"/florete-* | sed 's|.*/||'; }

# forget takes out the units that are not in $1.
forget() {
	for path in "$units"/florete-*; do
		unit=${path##*/}
		[ -f "$path" ] && [ ! -e "$1/$unit" ] || continue
		changing
		act systemctl --quiet ${root:+--root="$root"} disable "$unit"
		! live || act systemctl stop "$unit"
		gone "$path"
	done
}

# switch puts the version $1, which is in $base, in force.
switch() {
	version=$1
	new=$base/$version
	[ -z "$dry" ] || [ -d "$new" ] || new=$here
	if [ -e "$base/unfinished" ]; then
		read -r old _ <"$base/unfinished"
		[ "$old" != - ] || old=
		changing
	else
		old=$(readlink "$base/current" || :)
	fi

	put "$new/florete.sysusers" "$root/etc/sysusers.d/florete.conf"
	[ -z "$changed" ] || act systemd-sysusers ${root:+--root="$root"} florete.conf
	put "$new/florete.sysctl" "$root/etc/sysctl.d/60-florete.conf"
	for name in flor flor-provider; do
		if [ -e "$new/bin/$name" ]; then
			link "/usr/local/lib/florete/current/bin/$name" "$root/usr/local/bin/$name"
		else
			gone "$root/usr/local/bin/$name"
		fi
	done
	link /usr/local/lib/florete/current/install.sh "$root/usr/local/sbin/florete-install"
	link /usr/local/lib/florete/current/documents "$root/etc/florete/documents"
	link "$version" "$base/current"
	[ -z "$old" ] || [ "$old" = "$version" ] || link "$old" "$base/previous"
	forget "$new/units"
	for path in "$new"/units/*; do
		put "$path" "$units/${path##*/}"
	done

	if [ -z "$changed" ]; then
		echo "florete $version: nothing to do"
		return
	fi
	! live || act systemctl daemon-reload
	act systemctl --quiet ${root:+--root="$root"} enable $(enabled "$new/units")
	if live; then
		# All that others set too, in order: the last says it.
		act systemctl restart systemd-sysctl.service || echo "the kernel gets its settings at the next boot"
		act systemctl start $(enabled "$new/units" | grep -E '\.(path|socket|timer)$')
		act systemctl restart florete-activate.service florete-names.service
		act systemctl try-restart florete-agent.service
		[ ! -e "$new/units/florete-host.service" ] || act systemctl try-restart florete-host.service
		if [ -e /etc/florete/provider.hujson ] && [ -e "$new/units/florete-provider.service" ]; then
			act systemctl --no-block restart florete-provider.service
		fi
	fi
	for path in "$base"/*-*; do
		case ${path##*/} in "$version" | "$(readlink "$base/previous" || :)") ;; *) gone "$path" ;; esac
	done
	act rm -f "$base/unfinished"
	echo "florete $version: installed"
}

install() {
	version=$(cat "$here/version") || die "$here holds no bundle: unpack it whole"
	key=$root/etc/ssh/ssh_host_ed25519_key.pub
	if [ -z "$any" ] && [ -e "$key" ] && ! grep -qF "$(cut -d' ' -f1,2 "$key")" "$here/documents/manifest.json"; then
		die "this bundle is of another host: its manifest does not declare $(cut -d' ' -f1,2 "$key") of $key: install it there, or declare this key, or give --any-host"
	fi
	if [ ! -d "$base/$version" ]; then
		act mkdir -p "$base"
		[ ! -e "$base/unpacked" ] || act rm -rf "$base/unpacked"
		act cp -R "$here" "$base/unpacked"
		act mv -T "$base/unpacked" "$base/$version"
	fi
	switch "$version"
}

rollback() {
	if [ -e "$base/unfinished" ]; then
		read -r _ version <"$base/unfinished"
	else
		version=$(readlink "$base/previous") || die "there is no version before the present one"
	fi
	switch "$version"
}

remove() {
	old='' version=''
	if live && [ -e "$base/current" ]; then
		# Paths first: they would reach again the targets that are stopped.
		act systemctl stop 'florete-*.path'
		act systemctl stop 'florete-*'
		act "$base/current/bin/flor" names --remove
	fi
	forget /nonexistent
	gone "$root/usr/local/bin/flor" "$root/usr/local/bin/flor-provider" "$root/usr/local/sbin/florete-install" \
		"$root/etc/florete/documents" "$root/etc/sysusers.d/florete.conf" "$root/etc/sysctl.d/60-florete.conf" "$base"
	[ -z "$purge" ] || gone "$root/var/lib/florete"
	[ -z "$changed" ] || ! live || act systemctl daemon-reload
	for path in "$root/var/lib/florete" "$root/var/lib/florete-provider" "$root/etc/florete/provider.hujson"; do
		[ ! -e "$path" ] || echo "kept $path"
	done
	echo "florete: removed"
}

main() {
	do=install dry='' root='' any='' purge='' changed='' old=''
	while [ $# -gt 0 ]; do
		case $1 in
		--dry-run) dry=1 ;;
		--rollback) do=rollback ;;
		--remove) do=remove ;;
		--purge) purge=1 ;;
		--any-host) any=1 ;;
		--root)
			[ $# -gt 1 ] || die "--root: want a directory"
			shift
			root=${1%/}
			;;
		--help)
			usage
			exit
			;;
		*) die "$1: no such option: see --help" ;;
		esac
		shift
	done
	[ -z "$purge" ] || [ "$do" = remove ] || die "--purge: only with --remove"
	[ "$(id -u)" = 0 ] || [ -n "$dry" ] || die "run it as root"
	here=$(dirname "$(readlink -f "$0")")
	base=$root/usr/local/lib/florete
	units=$root/etc/systemd/system
	"$do"
}

main "$@"
