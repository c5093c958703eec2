fn main() {
    step_1(); // unchanged
    step_2();
    step_3();
    step_4();
    step_5();
    step_6();
    step_7();
    step_8();
}
