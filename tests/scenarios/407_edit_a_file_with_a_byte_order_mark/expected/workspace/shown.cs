using System.Text;
class B {}
