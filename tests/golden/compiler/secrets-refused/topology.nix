# Wrong secrets.
{ base, merge, ... }:
merge base {
  secrets = {
    nobody = {
      generate = "hex";
      readers = [ ];
    };
    odd = {
      generate = "age";
      length = 32;
      readers = [
        { }
        {
          service = "wiki";
          host = "alpha";
        }
        { service = "wikki"; }
        { host = "gamma"; }
      ];
    };
    text = {
      generate = "password";
      public = ./public.json;
      readers = [
        { service = "wiki"; }
        { service = "wiki"; }
      ];
    };
    weak = {
      generate = "rot13";
      length = 8;
      rotate = "monthly";
      public = "public.json";
      readers = [ { service = 3; } ];
    };
    a-name-that-is-as-long-as-a-name-of-a-secret-may-be.generate = "hex";
    a-name-that-is-as-long-as-a-name-of-a-secret-maybe-or-so.generate = "hex";
  };
}
