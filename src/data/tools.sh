# Has each tool say its version, a line each. Rust ends the script if one takes too long.
exec </dev/null
cd /
ask() {
  command -v "$1" >/dev/null 2>&1 || return
  said=$({ "$@" 2>&1 || echo '!'; } | head -c 4000)
  case $said in *'!') return ;; esac
  set -f
  # In one write, so that lines do not mix.
  set -- "$1" $said
  printf '%s\n' "$*"
}
# Says the versions of modules, too, in a tenth of the time that they would take.
python='import sys; print(sys.version)
try:
    import importlib.metadata as found
    for name in ("pip", "pytest"):
        for module in found.distributions(name=name):
            if module.version: print(name, module.version)
except Exception: print("pip ? pytest ?")'
ask python3 -c "$python" &
ask node --version &
ask bun --version &
ask deno --version &
ask cargo --version &
ask rustc --version &
ask go version &
ask java -version &
ask dotnet --version &
ask ruby --version &
ask php --version &
ask perl -v &
ask gcc --version &
ask make --version &
ask cmake --version &
ask git --version &
wait
exit 0
