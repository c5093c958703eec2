using System.Text;
class A {}
