set -e
test "$(sh calc.sh 2 + 3)" = 5
test "$(sh calc.sh 7 - 9)" = -2
echo "all passed"
