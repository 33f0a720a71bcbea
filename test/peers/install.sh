#!/bin/sh
# Installs the third-party programs that the tests check us against.
#
#   golang + golang.org/x/mod   the Go checksum database's note and tlog code, our second opinion on proofs
#   strace                      injects a failing or killed system call at every step of a write
#   xfsprogs, e2fsprogs         file systems of a fixed size, for full-disk and power-cut tests
#   util-linux                  mount, losetup, flock
#   libfaketime                 a clock that jumps under a running board
#   chromium-headless-shell, firefox-esr  browsers, for the pages as people use them
#   sigsum-go                   a C2SP witness (from bookworm-backports)
#   cadaver, curl               a WebDAV client and an HTTP client, for writing without POST
#   haproxy, nginx-light, caddy proxies in front of a board, with the files from src/hosting
#   systemd, prometheus         check the unit and the alerts of src/hosting
#   wget                        a crawler that obeys robots.txt
#   python3-cryptography        what the Python of /for-agents and /docs signs with
#   python3-feedparser          a feed reader; libxml2-utils has xmllint
#   nats-server                 NATS JetStream, which carries journals to followers: that of Debian's next release, and the
#                               one of bookworm, which a board refuses; unpacked beside this, not installed
#   package.json beside this    MCP clients, hosts and conformance, x402 and MPP, a tokenizer, orval, feed readers: from npm
#
# Debian bookworm's own packages, through apt, as root; those of npm into node_modules beside this. Safe to run again.
set -eu
cd "$(dirname "$0")"

if ! [ node_modules/.package-lock.json -nt package-lock.json ]; then
  echo "peers: installing those from npm"
  npm ci --ignore-scripts --no-audit --no-fund
fi

packages="golang-1.19-go golang-golang-x-mod-dev strace xfsprogs e2fsprogs util-linux libfaketime chromium-headless-shell firefox-esr cadaver curl python3-cryptography haproxy nginx-light caddy wget systemd prometheus python3-feedparser libxml2-utils"

installed() {
  dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "peers: this script knows Debian's apt only. Install by your own means: $packages" >&2
  exit 1
fi

# Go binaries depend on nothing in their Debian release: they are unpacked here, and nothing else is upgraded.
nats() { [ -x "nats/$1/usr/sbin/nats-server" ]; }

missing=""
for package in $packages sigsum-go; do
  installed "$package" || missing="$missing $package"
done

for release in forky bookworm; do
  nats "$release" || missing="$missing nats-server/$release"
done

if [ -z "$missing" ]; then
  echo "peers: everything is installed ($packages)"
  exit 0
fi

if [ "$(id -u)" -ne 0 ]; then
  echo "peers: missing:$missing" >&2
  echo "peers: run this as root: sh test/peers/install.sh" >&2
  exit 1
fi

echo "peers: installing$missing"
# Another apt may hold the lock for a minute: wait for it instead of failing.
export DEBIAN_FRONTEND=noninteractive
apt_get() { apt-get -q -o DPkg::Lock::Timeout=300 -o APT::Get::Lock::Timeout=300 "$@"; }
apt_get update
# shellcheck disable=SC2086  # a list of package names, meant to be split
apt_get install -y --no-install-recommends $packages

# Downloads one package from another suite, with a separate source list, so that nothing else is upgraded.
from_suite() {
  private="$(mktemp -d)"
  mkdir -p "$private/lists/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $1 main" > "$private/sources.list"
  suite() { apt_get -o Dir::Etc::sourcelist="$private/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$private/lists" "$@"; }
  suite update
  (cd "$private" && suite download "$2")
}

if ! installed sigsum-go; then
  from_suite bookworm-backports sigsum-go
  dpkg -i "$private"/sigsum-go*.deb
  rm -rf "$private"
fi
for release in forky bookworm; do
  nats "$release" && continue
  mkdir -p "nats/$release"
  from_suite "$release" nats-server
  dpkg-deb -x "$private"/nats-server*.deb "nats/$release"
  rm -rf "$private"
done

for package in $packages sigsum-go; do
  if ! installed "$package"; then
    echo "peers: $package is still missing after the install" >&2
    exit 1
  fi
done
echo "peers: everything is installed ($packages)"
