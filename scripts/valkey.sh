#!/bin/sh
# Prints the path of a Valkey server of 8.1 or later, which can compare and set by
# a native command; the tests of redisstore run on it as well as on Redis. Names
# what SUBMITONCE_TEST_VALKEY names, else what is in PATH, else what the system's
# packages have, else what Debian 13 has, unpacked into the user's cache with the
# libraries that it needs.
set -eu

say() { echo "scripts/valkey.sh: $*" >&2; }

# recent reports whether a server is of 8.1 or later.
recent() {
	v=$("$1" --version 2>/dev/null | sed -n 's/^Valkey server v=\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
	[ -n "$v" ] || return 1
	# shellcheck disable=SC2086
	set -- $v
	[ "$1" -gt 8 ] || { [ "$1" -eq 8 ] && [ "$2" -ge 1 ]; }
}

if [ -n "${SUBMITONCE_TEST_VALKEY:-}" ]; then
	recent "$SUBMITONCE_TEST_VALKEY" || { say "SUBMITONCE_TEST_VALKEY=$SUBMITONCE_TEST_VALKEY is no Valkey server of 8.1 or later"; exit 1; }
	echo "$SUBMITONCE_TEST_VALKEY"
	exit 0
fi
if recent valkey-server; then
	command -v valkey-server
	exit 0
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/submitonce/valkey
if recent "$cache/valkey-server"; then
	echo "$cache/valkey-server"
	exit 0
fi

advice="Install Valkey 8.1 or later so that valkey-server is in PATH, or name it in SUBMITONCE_TEST_VALKEY."
if ! command -v apt-get >/dev/null 2>&1; then
	say "there is no Valkey of 8.1 or later here, and no apt-get. $advice"
	exit 1
fi

# The system's own package, where it is recent enough.
if [ "$(id -u)" -eq 0 ]; then
	candidate=$(apt-cache policy valkey-server 2>/dev/null | sed -n 's/^ *Candidate: //p')
	case $candidate in
	8.[1-9]* | 9.* | [1-9][0-9].*)
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends valkey-server >&2 || true
		if recent valkey-server; then
			command -v valkey-server
			exit 0
		fi
		;;
	esac
fi

# Debian 13's package runs on an older system with Debian 13's loader and
# libraries. apt-get checks its signatures, with lists of its own.
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] || { say "there is no $keys to check Debian's packages by. $advice"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial"
: >"$work/status"
echo "deb [signed-by=$keys] ${SUBMITONCE_DEBIAN_MIRROR:-http://deb.debian.org/debian} trixie main" >"$work/sources.list"
private() {
	apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" \
		-o Dir::Cache="$work" -o Dir::Cache::Archives="$work/archives" -o APT::Sandbox::User= "$@" >&2
}
say "unpacking Valkey into $cache"
private update || { say "Debian's archive cannot be reached. $advice"; exit 1; }
(cd "$work" && private download valkey-tools libc6 libatomic1 libjemalloc2 liblzf1 libsystemd0 libcap2 libssl3t64 \
	libstdc++6 libgcc-s1 zlib1g libzstd1) || { say "Debian's packages could not be downloaded. $advice"; exit 1; }
rm -rf "$cache"
mkdir -p "$cache/root"
for deb in "$work"/*.deb; do
	dpkg-deb -x "$deb" "$cache/root"
done
loader=$(find "$cache/root/usr/lib" -name 'ld-linux-*.so.*' -type f | head -n 1)
[ -n "$loader" ] || { say "the packages hold no loader. $advice"; exit 1; }
libraries=$(dirname "$loader")
# One program is all of Valkey's: its name says what it is to be.
cat >"$cache/valkey-server" <<END
#!/bin/sh
exec "$loader" --argv0 valkey-server --library-path "$libraries" "$cache/root/usr/bin/valkey-check-rdb" "\$@"
END
chmod +x "$cache/valkey-server"
recent "$cache/valkey-server" || { say "what was unpacked into $cache does not run here. $advice"; exit 1; }
echo "$cache/valkey-server"
