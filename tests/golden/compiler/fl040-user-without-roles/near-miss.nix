{ base, merge, ... }:
merge base {
  users.bob = { };
  acknowledge = [
    {
      id = "FL040";
      place = "users.bob";
      reason = "on leave until May";
    }
  ];
}
