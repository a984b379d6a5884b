{ base, merge, ... }:
merge base {
  services.blog = {
    host = "beta";
    port = 1;
  };
  acknowledge = [
    {
      id = "FL041";
      place = "services.blog";
      reason = "opens on Monday";
    }
  ];
}
