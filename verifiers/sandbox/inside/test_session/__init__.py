"""Tests in one process, the solution in another, and a line of messages between the two.

    tests            role `tests`: runs test code, whose names stand for what the solution has
    session            sends its requests to the other process, one after the other
    remote_objects     what test code holds in place of the solution's functions and objects, and how they travel
    operators            `==`, `<`, `+` on them
    surroundings         what both processes have around them: names that tests replace, streams, folder

    serve            role `serve`: loads the solution, answers requests, and knows its objects by numbers

    shared_objects   what both processes have: types and modules by name, arguments and lent containers by index

Suites that are data (calls with expected results) need none of this.
"""
