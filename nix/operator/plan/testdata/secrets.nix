# A secret with two readers becomes shorter and rotates less often, and a host gets a key of its
# own.
{ base, merge, ... }:
let
  before = merge base {
    secrets.session = {
      generate = "password";
      length = 40;
      rotate = 30;
      readers = [
        { service = "wiki"; }
        {
          host = "alpha";
          overlap = true;
        }
      ];
    };
    providers.secret.hosts = [ "alpha" ];
  };
in
{
  inherit before;
  after = merge before {
    secrets = {
      session = {
        length = 20;
        rotate = 0;
      };
      backup = {
        generate = "age";
        readers = [ { host = "beta"; } ];
      };
    };
  };
}
