# Has each tool say its version, a line each. Where there is no `timeout`, tools are named without their versions: one
# of them could take for ever.
exec </dev/null
cd /
limit=
timeout -k 1 1 true 2>/dev/null && limit='timeout -k 1 3'
has() { command -v "$1" >/dev/null 2>&1; }
ask() {
  has "$1" || return
  said=
  test -n "$limit" && said=$({ $limit "$@" 2>&1 || echo '!'; } | head -c 4000)
  case $said in *'!') said= ;; esac
  printf 'tool %s %s\n' "$1" "$(printf %s "$said" | head -n 3 | tr '\n' ' ')"
}
# Whether a tool that may be a module of `python3` belongs to another Python.
module() {
  test -n "$limit" && has "$1" && has python3 || return
  $limit python3 -m "$1" --version >/dev/null 2>&1 || printf 'apart %s\n' "$1"
}
ask python3 --version &
ask pip --version &
ask pytest --version &
ask node --version &
ask npm --version &
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
module pip &
module pytest &
wait
exit 0
